"use strict";
// Pointing at a mosaic tells of the place what its maps say, whichever of them is shown.
for (const figure of document.querySelectorAll("figure.mosaic")) {
  const images = [...figure.querySelectorAll("img.map")];
  if (!images.length || !("DecompressionStream" in window)) continue;
  const stage = figure.querySelector(".stage");
  const reading = figure.querySelector(".reading");
  const invitation = "Point at a place of the mosaic to read its values.";
  reading.hidden = false;
  reading.textContent = invitation;
  let maps;
  stage.addEventListener("pointermove", async (event) => {
    const box = stage.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width;
    const y = (event.clientY - box.top) / box.height;
    maps ??= Promise.all(images.map(readable));
    const said = (await maps).map((map) => map(x, y)).filter(Boolean);
    reading.textContent = said.length ? said.join(" · ") : "No frame shows this place.";
  });
  stage.addEventListener("pointerleave", () => (reading.textContent = invitation));
}

const WORDS = {
  uncertainty(index, { top, steps, beyond, frame }) {
    const px = top * ((index - 1) / (steps - 1)) ** 2;
    const digits = px < 9.995 ? 2 : px < 99.95 ? 1 : 0;
    return `± ${px.toFixed(digits)} px${index == steps ? beyond : ""} relative to frame ${frame}`;
  },
  source: (index, { frames }) => `taken from frame ${frames.split(" ")[index - 1]}`,
  coverage: (index, { most }) => `seen in ${index}${index == most ? " or more" : ""} frame${index === 1 ? "" : "s"}`,
};

// The numbers in a PNG of ours: rows as differences to the row above, 0 for nothing. A canvas would tell them too, but
// some browsers change a little what is read from one.
async function readable(image) {
  const bytes = Uint8Array.from(atob(image.src.split(",")[1]), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const [width, height, depth] = [view.getUint32(16), view.getUint32(20), bytes[25] === 3 ? 1 : 3];
  let packed;
  for (let at = 8; at < bytes.length; at += 12 + view.getUint32(at)) {
    if (view.getUint32(at + 4) === 0x49444154) packed = bytes.subarray(at + 8, at + 8 + view.getUint32(at));
  }
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const rows = new Uint8Array(await new Response(unpacked).arrayBuffer());
  const row = 1 + depth * width;
  for (let at = row; at < rows.length; at++) if (at % row) rows[at] += rows[at - row];
  const say = WORDS[image.classList[1]];
  return (x, y) => {
    const [column, line] = [Math.floor(x * width), Math.floor(y * height)];
    if (column < 0 || line < 0 || column >= width || line >= height) return "";
    const at = line * row + 1 + column * depth;
    const [red, green, blue] = rows.subarray(at, at + 3);
    const index = depth === 1 ? red : ((red & 31) << 10) | ((green & 31) << 5) | (blue & 31);
    return index ? say(index, image.dataset) : "";
  };
}
