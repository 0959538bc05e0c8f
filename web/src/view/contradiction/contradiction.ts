/** Tells that an answer contradicts what was known, and shows it beside the answer that disagrees most. */
import type { Contradiction, Question, Side } from "../../model/messages";
import { pointOf } from "../../model/pose";
import { verdictWords } from "../../model/words";
import type { Application } from "../../state/application";
import { make } from "../make";
import { PALETTE } from "../question/palette";

export function mountContradiction(host: HTMLElement, app: Application): void {
  const words = make("p", {});
  const pairs = make("div", { class: "pairs" });
  const close = () => app.contradiction.set(null);
  const keep = makeChoice("keep", "keep the answer as it is", close);
  const correct = makeChoice("correct", "show the pair again, to answer it again", () => {
    const contradiction = app.contradiction.value;
    close();
    if (contradiction !== null) void app.look(contradiction.i, contradiction.j);
  });
  const undo = makeChoice("undo", "undo the answer", () => void app.undo());
  const panel = make(
    "section",
    { class: "contradiction", "data-testid": "contradiction", role: "alert", hidden: true },
    make("h2", {}, "This answer contradicts the others"),
    words,
    pairs,
    make("div", { class: "buttons" }, correct, undo, keep),
  );
  host.append(panel);
  app.contradiction.subscribe((contradiction) => {
    panel.hidden = contradiction === null;
    pairs.replaceChildren();
    if (contradiction === null) return;
    words.textContent = contradiction.explanation;
    void showPairs(pairs, contradiction, app);
  });
}

async function showPairs(host: HTMLElement, contradiction: Contradiction, app: Application): Promise<void> {
  const { i, j, rival_i, rival_j, rival_author } = contradiction;
  const figures = [makePair("this answer", i, j, app)];
  if (rival_i !== null && rival_j !== null) {
    const whose = rival_author === "person" ? "a person’s answer" : "the matcher’s answer";
    figures.push(makePair(`${whose} that disagrees most`, rival_i, rival_j, app));
  }
  for (const { figure } of figures) host.append(figure);
  await Promise.allSettled(figures.map(({ load }) => load()));
}

interface PairFigure {
  readonly figure: HTMLElement;
  load(): Promise<void>;
}

function makePair(title: string, i: number, j: number, app: Application): PairFigure {
  const canvases = { i: make("canvas", {}), j: make("canvas", {}) };
  const said = make("span", {});
  const figure = make(
    "figure",
    {},
    make("figcaption", {}, make("strong", {}, title), ` frames ${i} and ${j} `, said),
    make("div", { class: "thumbnails" }, canvases.i, canvases.j),
  );
  const load = async () => {
    const { api, pictures } = app;
    const [question, pictureI, pictureJ] = await Promise.all([api.pair(i, j), pictures.load(i), pictures.load(j)]);
    if (question.answer !== null) said.textContent = `· ${verdictWords(question.answer.verdict)}`;
    paintThumbnail(canvases.i, pictureI, question, "i");
    paintThumbnail(canvases.j, pictureJ, question, "j");
  };
  return { figure, load };
}

function paintThumbnail(canvas: HTMLCanvasElement, picture: ImageBitmap, { answer }: Question, side: Side): void {
  const width = 2 * (canvas.clientWidth || 160);
  const scale = width / picture.width;
  canvas.width = width;
  canvas.height = Math.round(picture.height * scale);
  const context = canvas.getContext("2d")!;
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  for (const landmark of answer?.landmarks ?? []) {
    const { x, y } = pointOf(landmark, side);
    context.beginPath();
    context.arc((x + 0.5) * scale, (y + 0.5) * scale, 7, 0, 2 * Math.PI);
    context.lineWidth = 5;
    context.strokeStyle = "rgb(0 0 0 / 0.6)";
    context.stroke();
    context.lineWidth = 2.5;
    context.strokeStyle = PALETTE[side];
    context.stroke();
  }
}

function makeChoice(name: "keep" | "correct" | "undo", title: string, act: () => void): HTMLButtonElement {
  const kind = name === "correct" ? "primary" : null;
  const button = make("button", { type: "button", title, class: kind, "data-testid": `contradiction-${name}` }, name);
  button.addEventListener("click", act);
  return button;
}
