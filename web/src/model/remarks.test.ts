import { describe, expect, it } from "vitest";
import { begin, complete, EMPTY } from "./draft";
import type { Judgement, Knowledge } from "./knowledge";
import { errorWords, judgementWords, nextLandmarkWords, remarkOn } from "./remarks";

const good: Judgement = { tone: "good", offPx: 0.8, reachPx: 1.9 };
const knowledge = {
  source: "landmarks",
  problem: null,
  judgements: [good],
  errorPx: 2.14,
  oneMorePx: 1.41,
} as unknown as Knowledge;
const open = begin(EMPTY, "i", { x: 1, y: 1 }, { x: 2, y: 2 });
const drawn = complete(open);

describe("the remark on landmarks", () => {
  it("says what one more landmark would bring, or that it would bring little", () => {
    const more = "One more landmark, far from the others, would bring ± 1.4 px.";
    expect(nextLandmarkWords(knowledge)).toBe(more);
    expect(nextLandmarkWords({ ...knowledge, oneMorePx: 2.1 })).toBe("One more landmark would change little.");
    expect(remarkOn(drawn, knowledge, null, false)).toBe(`You can confirm now. ${more}`);
  });

  it("says that one more landmark checks what nothing has checked", () => {
    const unchecked = { ...knowledge, oneMorePx: 2.1, judgements: [{ ...good, tone: "unchecked" as const }] };
    expect(nextLandmarkWords(unchecked)).toContain("and check what you have");
  });

  it("names the landmark that does not fit, and puts first what the program says", () => {
    const doubted = { ...knowledge, judgements: [good, { ...good, tone: "bad" as const }] };
    const two = complete(begin(drawn, "i", { x: 3, y: 3 }, { x: 4, y: 4 }));
    expect(remarkOn(two, doubted, null, false)).toContain("Landmark 2 does not fit");
    expect(remarkOn(two, doubted, "It contradicts.", true)).toBe("It contradicts.");
  });

  it("leads somebody new through three steps", () => {
    const said = [EMPTY, open, drawn].map((draft) => remarkOn(draft, knowledge, null, true).slice(0, 11));
    expect(said).toEqual(["Step 1 of 3", "Step 2 of 3", "Step 3 of 3"]);
    const unknown = { ...knowledge, errorPx: null };
    expect(remarkOn(open, knowledge, null, true)).toContain("accept the place shown");
    expect(remarkOn(open, unknown, null, true)).not.toMatch(/ellipse|accept/);
  });
});

describe("what is known", () => {
  it("is told with where it comes from", () => {
    expect(errorWords(knowledge)).toBe("± 2.1 px with landmarks");
    expect(errorWords({ ...knowledge, source: "mosaic" })).toBe("± 2.1 px by the mosaic alone");
    expect(errorWords({ ...knowledge, errorPx: null })).toBe("position not known yet");
  });

  it("is told of a landmark with how much can be noticed", () => {
    expect(judgementWords(good)).toMatch(/^0\.8 px from where .* know to ± 1\.9 px$/);
    expect(judgementWords({ ...good, tone: "unchecked" })).toContain("too little to notice a wrong point");
  });
});
