import { describe, expect, it } from "vitest";
import type { Forecast, Proposal, Question, State } from "./messages";
import { errorSummary, gainWords, matcherSays, percent, personWords, reasonsOf } from "./words";

describe("what is said of a person", () => {
  const measured = { person: "Ann", known: 4, right: 3, unsure: 1, sigma_px: 1.52, sigma_uncertainty_px: 0.3 };

  it("names agreement and noise, the noise with its uncertainty", () => {
    expect(personWords(measured)).toBe(
      "Ann: 3 of 4 known pairs answered right (and 1 “cannot tell”), landmarks ± 1.5 px (known to ± 0.3 px).",
    );
  });

  it("says no noise without a yes", () => {
    expect(personWords({ ...measured, known: 1, right: 1, unsure: 0, sigma_px: null, sigma_uncertainty_px: null })).toBe(
      "Ann: 1 of 1 known pair answered right.",
    );
  });
});

const counts = { yes: 3, no: 1, unsure: 0, by_person: 4 };
const state = { predicted_px: 4.23, target_px: 2, target_met: false, parts: 1, counts } as State;
const forecast: Forecast = { revision: 1, i: 0, j: 9, now_px: 4.2, after_yes_px: 2.898, more: 6, more_is_bound: false };
const reasons = { overlap: 0.71, position: 0.62, appearance: 0.88, joined: true, unknown_px: 24.3 };
const question = { i: 0, j: 9, suggested: true, ...reasons } as Question;

describe("words", () => {
  it("say how good the mosaic is and how far the target", () => {
    expect(errorSummary(state, forecast)).toBe("error ± 4.2 px · target 2.0 px · 4 answers, about 6 more");
    expect(errorSummary(state, { ...forecast, more: 50, more_is_bound: true })).toContain("4 answers, more than 50 more");
    expect(errorSummary({ ...state, target_px: null }, forecast)).toBe("error ± 4.2 px · 4 answers");
    expect(errorSummary({ ...state, predicted_px: 1.5, target_met: true }, forecast)).toContain("target reached");
  });

  it("call the target reached only where the error is surely below it, and of one mosaic", () => {
    expect(errorSummary({ ...state, predicted_px: 1.5, target_met: false }, forecast)).not.toContain("target reached");
    expect(errorSummary({ ...state, target_met: true, parts: 2 }, forecast)).not.toContain("target reached");
  });

  it("say what a yes would bring", () => {
    expect(gainWords(question, forecast)).toBe("A yes would lower the error from 4.2 to 2.9 px.");
    expect(gainWords(question, { ...forecast, after_yes_px: 4.199 })).toContain("hardly");
    // "From 0.3 to 0.3 px" would say nothing.
    expect(gainWords(question, { ...forecast, now_px: 0.34, after_yes_px: 0.26 })).toContain("hardly");
    expect(gainWords({ ...question, joined: false }, forecast)).toBe("A yes would join two separate parts.");
    expect(gainWords(question, null)).toBe("");
  });

  it("say why a pair is asked", () => {
    expect(reasonsOf(question)[0]).toMatch(/^Smalti chose this pair/);
    expect(reasonsOf(question).slice(1)).toEqual([
      "Probability of a yes: 71 % (62 % from their positions alone, 88 % from how they look).",
      "The place of frame 9 in frame 0 is known to ± 24.3 px.",
    ]);
    expect(reasonsOf({ ...question, joined: false })[2]).toContain("No answer joins");
    expect(reasonsOf({ ...question, suggested: false })[0]).toBe("You chose this pair.");
  });

  it("say what the matcher thinks", () => {
    const proposal: Proposal = { i: 0, j: 9, verdict: "no", landmarks: [], reason: "7 matches, 10 needed", sure: true };
    expect(matcherSays(proposal)).toBe("The matcher found no match: 7 matches, 10 needed.");
    const doubtful: Proposal = { ...proposal, verdict: "yes", reason: "", sure: false };
    expect(matcherSays(doubtful)).toBe("The matcher found 0 common points, but is not sure.");
  });

  it("do not call something small nothing", () => {
    expect(percent(0.004)).toBe("less than 1 %");
    expect(percent(0)).toBe("0 %");
  });
});
