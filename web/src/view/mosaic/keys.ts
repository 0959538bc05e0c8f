/** The keyboard in the mosaic: arrows pan, + and - zoom about the middle, 0 shows all, Enter lists the frames there. */
import type { Stage } from "./stage";

const STEP = 48;
const FAST = 4;
const ZOOM = 1.25;

const ARROWS: Record<string, readonly [number, number]> = {
  ArrowLeft: [1, 0],
  ArrowRight: [-1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};

export function handleKeys(stage: Stage, list: () => void, letGo: () => boolean): void {
  stage.canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { scene, screen } = stage;
    const middle = { x: screen.width / 2, y: screen.height / 2 };
    const arrow = ARROWS[event.key];
    if (arrow !== undefined) {
      const step = STEP * (event.shiftKey ? FAST : 1);
      scene.pan(step * arrow[0], step * arrow[1]);
    } else if (event.key === "+" || event.key === "=") scene.zoom(middle, ZOOM);
    else if (event.key === "-") scene.zoom(middle, 1 / ZOOM);
    else if (event.key === "0") scene.showAll();
    else if (event.key === "Enter") list();
    else if (event.key !== "Escape" || !letGo()) return;
    // The page has its own meaning for these.
    event.preventDefault();
    event.stopPropagation();
    stage.redraw();
  });
}
