import { describe, expect, it } from "vitest";
import type { Conflict, GiveAnswer, Outcome } from "../model/messages";
import type { Api } from "./api";
import { ConflictError, RefusedError, UnreachableError } from "./api";
import { Drafts } from "./drafts";
import type { Saving } from "./sending";
import { Sender } from "./sending";

const answer: GiveAnswer = { i: 1, j: 7, verdict: "no", landmarks: [], seen_revision: 4 };
const outcome = { done: "saved", state: { revision: 5 } } as Outcome;

function storage(): Storage {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  } as Storage;
}

/** A program that fails in given ways, one after another, and then answers. */
function setUp(...failures: Error[]) {
  const drafts = new Drafts(storage(), "project");
  const pauses: number[] = [];
  const api = {
    give: () => {
      const failure = failures.shift();
      return failure === undefined ? Promise.resolve(outcome) : Promise.reject(failure);
    },
  } as unknown as Api;
  const sender = new Sender(api, (seconds) => {
    pauses.push(seconds);
    return Promise.resolve();
  });
  const seen: Saving["kind"][] = [];
  sender.saving.subscribe(({ kind }) => seen.push(kind));
  return { sender, drafts, pauses, seen };
}

function conflict(theirs: Conflict["theirs"]): ConflictError {
  return new ConflictError({ explanation: "", i: 1, j: 7, theirs, state: {} as Conflict["state"] });
}

describe("sending", () => {
  it("says saved only after the program has answered", async () => {
    const { sender, drafts, seen } = setUp();
    expect(await sender.give(answer, drafts)).toBe(outcome);
    expect(seen).toEqual(["saved", "saving", "saved"]);
  });

  it("keeps the answer in the browser until then", async () => {
    const { sender, drafts } = setUp();
    const sending = sender.give(answer, drafts);
    expect(drafts.readUnsent()).toEqual(answer);
    await sending;
    expect(drafts.readUnsent()).toBeNull();
  });

  it("tries again with growing pauses while nobody answers", async () => {
    const { sender, drafts, pauses, seen } = setUp(...Array.from({ length: 7 }, () => new UnreachableError()));
    expect(await sender.give(answer, drafts)).toBe(outcome);
    expect(pauses).toEqual([1, 2, 4, 8, 16, 30, 30]);
    expect(seen).toContain("waiting");
  });

  it("waits for a program that is still opening the project", async () => {
    const { sender, drafts, pauses } = setUp(new UnreachableError(), new RefusedError(503, "still preparing"));
    expect(await sender.give(answer, drafts)).toBe(outcome);
    expect(pauses).toEqual([1, 2]);
  });

  it("ends a pause when the program is there again", async () => {
    const failures: Error[] = [new UnreachableError()];
    const api = { give: () => (failures.length > 0 ? Promise.reject(failures.pop()!) : Promise.resolve(outcome)) };
    const sender = new Sender(api as unknown as Api, () => new Promise(() => undefined));
    sender.saving.subscribe(({ kind }) => kind === "waiting" && setTimeout(() => sender.wake()));
    expect(await sender.give(answer, new Drafts(storage(), "project"))).toBe(outcome);
  });

  it("takes its own answer for saved if only the acknowledgement was lost", async () => {
    const same = conflict({ verdict: "no", landmarks: [], author: "person", reason: "" });
    const { sender, drafts } = setUp(new UnreachableError(), same);
    expect(await sender.give(answer, drafts)).toBe("theirs is the same");
  });

  it("tells of another’s answer, also after a loss", async () => {
    const other = conflict({ verdict: "unsure", landmarks: [], author: "person", reason: "" });
    const { sender, drafts } = setUp(new UnreachableError(), other);
    await expect(sender.give(answer, drafts)).rejects.toBeInstanceOf(ConflictError);
    expect(sender.isBusy).toBe(false);
  });

  it("does not repeat what is refused", async () => {
    const { sender, drafts, pauses } = setUp(new RefusedError(400, "collinear"));
    await expect(sender.give(answer, drafts)).rejects.toThrow("collinear");
    expect(pauses).toEqual([]);
    expect(drafts.readUnsent()).toBeNull();
  });
});
