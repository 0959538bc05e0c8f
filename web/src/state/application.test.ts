import { beforeEach, describe, expect, it, vi } from "vitest";
import { begin, complete, move } from "../model/draft";
import type { Contradiction, GiveAnswer, Notice, Outcome, Question, State } from "../model/messages";
import type { Api } from "./api";
import { ConflictError, UnreachableError } from "./api";
import { Application } from "./application";

const zeros = Array.from({ length: 64 }, () => 0);
const map = [1, 0, 0, 0, 1, 0, 0, 0, 1];

function stateAt(revision: number, more: Partial<State> = {}): State {
  const counts = { yes: 0, no: 0, unsure: 0, by_person: revision };
  const common = { stage: "asking", name: "film", source: "film.mp4", queue: "all", folder: "/film", usable: 9 };
  return { ...common, revision, counts, width: 320, height: 240, lens: null, parts: 1, working: false, ...more } as State;
}

function questionOf(i: number, j: number, revision: number, suggested = true): Question {
  const looks = { label_i: "", label_j: "", overlap: 0, position: 0, appearance: 0, joined: true, unknown_px: 0 };
  const maps = { i_from_j: map, covariance: zeros, noise: 1 };
  return { ...looks, ...maps, i, j, revision, suggested, answer: null, is_known: false };
}

function storage(): Storage {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  } as Storage;
}

/** A program that asks about (revision, 8) and takes whatever it is told. */
class Program {
  revision = 0;
  stage: State["stage"] = "asking";
  given: GiveAnswer[] = [];
  contradiction: Contradiction | null = null;
  failure: Error | null = null;
  working = false;
  stopped: string | null = null;

  readonly api = {
    state: async () => stateAt(this.revision, { stage: this.stage, working: this.working, stopped: this.stopped, queue: "doubtful" }),
    question: async () => (this.working ? null : this.question),
    pair: async (i: number, j: number) => questionOf(i, j, this.revision, false),
    mosaic: async () => ({}),
    answers: async () => [],
    give: async (answer: GiveAnswer) => {
      this.given.push(answer);
      if (this.failure !== null) throw this.failure;
      return this.move();
    },
    undo: async () => this.move(),
    frameAddress: () => "nowhere",
  } as unknown as Api;

  get question(): Question {
    return questionOf(this.revision, 8, this.revision);
  }

  move(): Outcome {
    this.revision += 1;
    const { revision, contradiction, working } = this;
    const question = working ? null : this.question;
    return { state: stateAt(revision, { working }), question, contradiction, done: "done" };
  }

  get notice(): Notice {
    const { revision, stage, working } = this;
    return { revision, stage, progress: null, prediction: null, working };
  }
}

/** Let everything that was begun come to its end. */
async function settle(): Promise<void> {
  for (let round = 0; round < 20; round++) await new Promise((resolve) => setTimeout(resolve));
}

describe("the application", () => {
  let program: Program;
  let kept: Storage;
  let app: Application;

  const draw = () => app.drawing.edit((draft) => complete(begin(draft, "i", { x: 5, y: 5 }, { x: 6, y: 6 })));

  beforeEach(async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("no pictures here")));
    program = new Program();
    kept = storage();
    app = new Application(program.api, kept);
    await app.refresh();
  });

  it("shows the suggested pair, and the next one after an answer", async () => {
    expect(app.question.value).toMatchObject({ i: 0, j: 8 });
    await app.give("no");
    expect(program.given[0]).toMatchObject({ i: 0, j: 8, verdict: "no", seen_revision: 0 });
    expect(app.question.value).toMatchObject({ i: 1, j: 8 });
  });

  it("answers a pair once, however often the key is pressed", async () => {
    void app.give("no");
    void app.give("no");
    await settle();
    expect(program.given).toHaveLength(1);
  });

  it("gives landmarks with a yes only", async () => {
    draw();
    await app.give("unsure");
    expect(program.given[0]!.landmarks).toEqual([]);
    draw();
    await app.give("yes");
    expect(program.given[1]!.landmarks).toHaveLength(1);
  });

  it("waits for landmarks that are being snapped before it gives them", async () => {
    draw();
    app.drawing.snapping.set(1);
    const given = app.give("yes");
    await settle();
    expect(program.given).toHaveLength(0);
    app.drawing.edit((draft) => move(draft, 0, "j", { x: 7, y: 7 }, "snapped"));
    app.drawing.snapping.set(0);
    await given;
    expect(program.given[0]!.landmarks).toMatchObject([{ x_j: 7, origin: "snapped" }]);
  });

  it("gives landmarks as they are set if the program takes too long to snap them", async () => {
    draw();
    app.drawing.snapping.set(1);
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    const given = app.give("yes");
    await vi.advanceTimersByTimeAsync(3000);
    vi.useRealTimers();
    await given;
    expect(program.given[0]!.landmarks).toMatchObject([{ x_j: 6, origin: "clicked" }]);
  });

  it("keeps a contradiction on the screen until it is dealt with", async () => {
    program.contradiction = { i: 0, j: 8, explanation: "no" } as Contradiction;
    await app.give("no");
    program.contradiction = null;
    await app.give("no");
    expect(app.contradiction.value?.explanation).toBe("no");
    await app.undo();
    expect(app.contradiction.value).toBeNull();
  });

  it("follows what others answer while nothing is drawn", async () => {
    program.move();
    app.hear(program.notice);
    await settle();
    expect(app.question.value).toMatchObject({ i: 1, revision: 1 });
  });

  it("keeps what was predicted until the next word on it, and knows after which answers that was", () => {
    const prediction = { answers: 0, bound_px: 3, ahead: [], worth_going_on: true };
    app.hear({ ...program.notice, prediction });
    expect(app.prediction.value).toEqual({ ...prediction, revision: 0 });
    program.move();
    app.hear(program.notice);
    expect(app.prediction.value).toEqual({ ...prediction, revision: 0 });
    app.hear({ ...program.notice, prediction: { ...prediction, bound_px: 2 } });
    expect(app.prediction.value).toMatchObject({ bound_px: 2, revision: 1 });
  });

  it("leaves what is drawn alone when others answer, and says so", async () => {
    draw();
    program.move();
    app.hear(program.notice);
    await settle();
    expect(app.question.value).toMatchObject({ i: 0, revision: 0 });
    expect(app.drawing.draft.value.landmarks).toHaveLength(1);
    expect(app.voice.announcement.value?.text).toContain("Your drawing is kept");
  });

  it("keeps what is drawn over a restart of the program", async () => {
    draw();
    program.stage = "preparing";
    await app.refresh();
    program.stage = "asking";
    program.revision = 3;
    await app.refresh();
    expect(app.question.value).toMatchObject({ i: 0 });
    expect(app.drawing.draft.value.landmarks).toHaveLength(1);
  });

  it("shows whose answer crossed, and replaces it only when told to", async () => {
    const conflict = { explanation: "changed", i: 0, j: 8, theirs: null, state: stateAt(5) };
    program.failure = new ConflictError(conflict);
    await app.give("no");
    expect(app.answerConflict.value?.mine.verdict).toBe("no");
    expect(app.question.value).toMatchObject({ i: 0, j: 8 });
    program.failure = null;
    await app.resolve("mine");
    expect(program.given[1]).toMatchObject({ verdict: "no", seen_revision: 5 });
    expect(app.answerConflict.value).toBeNull();
  });

  it("knows an answer of its own other tab from that of another person", async () => {
    const other = new Application(program.api, kept);
    await other.refresh();
    const said: string[] = [];
    app.voice.announcement.subscribe((announcement) => announcement && said.push(announcement.text));
    await other.give("no");
    app.hear(program.notice);
    await settle();
    expect(said.join()).toContain("another tab");
    expect(said.join()).not.toContain("Another person");
    program.move();
    app.hear(program.notice);
    await settle();
    expect(said.join()).toContain("Another person");
  });

  it("says whether an answer that crossed came from its own other tab", async () => {
    const other = new Application(program.api, kept);
    await other.refresh();
    await other.give("no");
    program.failure = new ConflictError({ explanation: "", i: 0, j: 8, theirs: null, state: stateAt(1) });
    await app.give("unsure");
    expect(app.answerConflict.value?.isOwn).toBe(true);
    const elsewhere = new Application(program.api, storage());
    await elsewhere.refresh();
    program.failure = new ConflictError({ explanation: "", i: 1, j: 8, theirs: null, state: stateAt(2) });
    await elsewhere.give("no");
    expect(elsewhere.answerConflict.value?.isOwn).toBe(false);
  });

  it("sends after a reload what could not be sent before it, once", async () => {
    program.failure = new UnreachableError();
    void app.give("no");
    await settle();
    program.failure = null;
    program.given = [];
    const reloaded = new Application(program.api, kept);
    await Promise.all([reloaded.refresh(), reloaded.refresh()]);
    await settle();
    expect(program.given).toHaveLength(1);
    expect(program.given[0]).toMatchObject({ i: 0, j: 8, verdict: "no" });
  });

  it("shows the question that the end of the matcher's turn brings, although no answer came", async () => {
    program.working = true;
    await app.give("no");
    app.hear(program.notice);
    await settle();
    expect(app.question.value).toBeNull();
    program.working = false;
    const said = vi.spyOn(app.voice, "say");
    program.stopped = "further answers would change little";
    app.hear(program.notice);
    await settle();
    expect(app.question.value).toMatchObject({ i: 1, j: 8 });
    const why = "The matcher has stopped: further answers would change little.";
    expect(said).toHaveBeenCalledWith(expect.stringContaining(why), undefined);
  });

  it("misses no end of the matcher's turn while an answer is on its way", async () => {
    program.working = true;
    const given = app.give("no");
    program.working = false;
    app.hear({ ...program.notice, revision: 1 });
    await given;
    await settle();
    expect(app.question.value).toMatchObject({ i: 1, j: 8 });
  });

  it("says what cannot be shown instead of failing silently", async () => {
    program.api.pair = () => Promise.reject(new UnreachableError());
    await app.look(3, 1);
    expect(app.voice.announcement.value).toMatchObject({ tone: "warning" });
    expect(app.voice.connected.value).toBe(false);
  });
});
