import { beforeEach, describe, expect, it } from "vitest";
import { begin, complete, select, toggle } from "../model/draft";
import type { Draft } from "../model/draft";
import type { Given, Question } from "../model/messages";
import { Drafts } from "./drafts";
import { Drawing } from "./drawing";

const frame = { width: 320, height: 240 };
const zeros = Array.from({ length: 64 }, () => 0);

function question(i: number, j: number, answer: Question["answer"] = null): Question {
  const map = [1, 0, 0, 0, 1, 0, 0, 0, 1];
  const common = { revision: 1, label_i: "", label_j: "", suggested: true, overlap: 0, position: 0, appearance: 0 };
  return { ...common, i, j, joined: true, unknown_px: 0, i_from_j: map, covariance: zeros, noise: 1, answer, is_known: false };
}

function add(x: number) {
  return (draft: Draft) => complete(begin(draft, "i", { x, y: x }, { x, y: x }));
}

describe("a drawing", () => {
  let kept: Map<string, string>;
  let drafts: Drafts;
  let drawing: Drawing;

  beforeEach(() => {
    kept = new Map();
    const storage = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
      removeItem: (key: string) => void kept.delete(key),
    } as Storage;
    drafts = new Drafts(storage, "project");
    drawing = new Drawing();
    drawing.load(question(1, 9), frame, null, drafts);
  });

  it("undoes and redoes step by step", () => {
    drawing.edit(add(5));
    drawing.edit(add(6));
    drawing.undo();
    expect(drawing.draft.value.landmarks).toHaveLength(1);
    drawing.redo();
    expect(drawing.draft.value.landmarks).toHaveLength(2);
    drawing.undo();
    drawing.edit(add(7));
    expect(drawing.canRedo).toBe(false);
  });

  it("does not count a selection as a step", () => {
    drawing.edit(add(5));
    drawing.edit((draft) => select(draft, null));
    drawing.undo();
    expect(drawing.draft.value.landmarks).toHaveLength(0);
  });

  it("survives a reload, with the point that is still open", () => {
    drawing.edit(add(5));
    drawing.edit((draft) => begin(draft, "j", { x: 3, y: 3 }, { x: 4, y: 4 }));
    const reloaded = new Drawing();
    reloaded.load(question(1, 9), frame, null, drafts);
    expect(reloaded.draft.value.landmarks).toHaveLength(1);
    expect(reloaded.draft.value.open?.point).toEqual({ x: 3, y: 3 });
  });

  it("keeps each pair’s landmarks apart", () => {
    drawing.edit(add(5));
    drawing.load(question(2, 9), frame, null, drafts);
    expect(drawing.draft.value.landmarks).toHaveLength(0);
    drawing.load(question(1, 9), frame, null, drafts);
    expect(drawing.draft.value.landmarks).toHaveLength(1);
  });

  it("leaves nothing behind once answered", () => {
    drawing.edit(add(5));
    drawing.settle(1, 9, drawing.draft.value.landmarks);
    expect(kept.size).toBe(0);
    expect(drawing.isTouched).toBe(false);
  });

  it("brings landmarks back when their answer is undone", () => {
    drawing.edit(add(5));
    drawing.settle(1, 9, drawing.draft.value.landmarks);
    drawing.load(question(2, 9), frame, null, drafts);
    drawing.load(question(1, 9), frame, null, drafts);
    expect(drawing.draft.value.landmarks).toHaveLength(1);
  });

  it("begins an answered pair with the landmarks of its answer", () => {
    const landmarks = complete(begin(drawing.draft.value, "i", { x: 1, y: 1 }, { x: 2, y: 2 })).landmarks;
    const answer: Given = { verdict: "yes", landmarks: [...landmarks], author: "person", reason: "" };
    drawing.load(question(3, 9, answer), frame, null, drafts);
    expect(drawing.draft.value.landmarks).toEqual(landmarks);
    expect(drawing.isTouched).toBe(false);
    drawing.edit((draft) => toggle(draft, 0));
    expect(drawing.isTouched).toBe(true);
  });

  it("goes on when the same pair comes again with news of the mosaic", () => {
    drawing.edit(add(5));
    drawing.load({ ...question(1, 9), revision: 2 }, frame, null, drafts);
    expect(drawing.draft.value.landmarks).toHaveLength(1);
    expect(drawing.canUndo).toBe(true);
  });

  it("never shows landmarks with the judgements of others", () => {
    const compare = () =>
      expect(drawing.knowledge.value?.judgements).toHaveLength(drawing.draft.value.landmarks.length);
    drawing.draft.subscribe(compare);
    drawing.knowledge.subscribe(compare);
    drawing.edit(add(5));
    drawing.edit(add(50));
    drawing.undo();
  });
});
