import { beforeEach, describe, expect, it } from "vitest";
import type { Question, Snapped, SnapPoint } from "../model/messages";
import type { Api } from "./api";
import { Application } from "./application";
import { UnreachableError } from "./api";
import { Hand } from "./hand";
import { PairView } from "./pairview";
import { Snapping } from "./snapping";

/** Known to a pixel or so: the ellipse of an expected place is about 5 px. */
const covariance = Array.from({ length: 64 }, (_, k) => (k % 9 === 0 ? 1e-4 : 0));
const question = { i: 0, j: 8, revision: 0, i_from_j: [1, 0, 0, 0, 1, 0, 0, 0, 1], covariance, noise: 1, joined: true, answer: null } as unknown as Question;

function storage(): Storage {
  const kept = new Map<string, string>();
  return { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value) } as Storage;
}

describe("snapping by itself", () => {
  const asked: SnapPoint[] = [];
  let answer: (point: SnapPoint) => Promise<Snapped>;
  let kept: Storage;
  let app: Application;
  let hand: Hand;
  let snapping: Snapping;

  const found = (x: number, y: number) => async () => ({ found: true, x, y, correlation: 0.95, reason: "" });
  const settled = async () => {
    while (app.drawing.snapping.value > 0) await new Promise((resolve) => setTimeout(resolve));
  };
  const click = async () => {
    hand.tap("j", { x: 100, y: 100 });
    hand.tap("i", { x: 102, y: 101 });
    await settled();
    return app.drawing.draft.value.landmarks;
  };
  const open = () => {
    const api = { snap: (point: SnapPoint) => (asked.push(point), answer(point)) } as unknown as Api;
    app = new Application(api, kept);
    app.drawing.load(question, { width: 320, height: 240 }, null, null);
    const pairView = new PairView(app.drawing);
    snapping = new Snapping(app, pairView, kept);
    hand = new Hand(app, pairView, snapping);
  };

  beforeEach(() => {
    asked.length = 0;
    answer = found(101.2, 99.7);
    kept = storage();
    open();
  });

  it("moves the point that was clicked second", async () => {
    expect(await click()).toMatchObject([{ x_i: 101.2, y_i: 99.7, x_j: 100, y_j: 100, origin: "snapped" }]);
    expect(asked).toMatchObject([{ moving: "i", x_i: 102, y_i: 101 }]);
  });

  it("moves the expected place that was accepted", async () => {
    hand.tap("j", { x: 100, y: 100 });
    hand.accept();
    await settled();
    expect(app.drawing.draft.value.landmarks).toMatchObject([{ x_i: 101.2, origin: "snapped" }]);
  });

  it("leaves a landmark as it was clicked, without a word, where a place is found farther off than a click is", async () => {
    answer = found(102, 106);
    expect(await click()).toMatchObject([{ x_i: 102, y_i: 101, origin: "clicked" }]);
    expect(app.voice.announcement.value).toBeNull();
  });

  it("leaves a landmark as it was clicked, without a word, where nothing is found", async () => {
    answer = async () => ({ found: false, x: 102, y: 101, correlation: 0, reason: "an edge" });
    expect(await click()).toMatchObject([{ origin: "clicked" }]);
    expect(app.voice.announcement.value).toBeNull();
  });

  it("leaves a landmark as it was clicked where the program cannot be reached", async () => {
    answer = () => Promise.reject(new UnreachableError());
    expect(await click()).toMatchObject([{ origin: "clicked" }]);
  });

  it("is one step that can be taken back, and does not come again", async () => {
    await click();
    app.drawing.undo();
    await settled();
    expect(app.drawing.draft.value.landmarks).toMatchObject([{ x_i: 102, y_i: 101, origin: "clicked" }]);
    expect(asked).toHaveLength(1);
  });

  it("does not move what the person has moved meanwhile", async () => {
    hand.tap("j", { x: 100, y: 100 });
    hand.tap("i", { x: 102, y: 101 });
    hand.nudge({ x: 1, y: 0 }, "normal");
    await settled();
    expect(app.drawing.draft.value.landmarks).toMatchObject([{ x_i: 103, y_i: 101, origin: "clicked" }]);
  });

  it("stays switched off in this browser", async () => {
    snapping.toggle();
    open();
    expect(await click()).toMatchObject([{ origin: "clicked" }]);
    expect(asked).toHaveLength(0);
  });
});
