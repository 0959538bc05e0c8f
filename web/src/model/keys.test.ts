import { describe, expect, it } from "vitest";
import type { KeyPress } from "./keys";
import { BINDINGS, bindingOf, keyLabel, keyName } from "./keys";

function press(key: string, more: Partial<KeyPress> = {}): KeyPress {
  return { key, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, repeat: false, ...more };
}

describe("keys", () => {
  it("belong to one command each", () => {
    const keys = BINDINGS.flatMap((binding) => binding.keys);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it("are found whatever the keyboard does to letters and signs", () => {
    expect(bindingOf(press("N"), true)?.command).toBe("no");
    expect(bindingOf(press("?", { shiftKey: true }), false)?.command).toBe("help");
    expect(bindingOf(press("+", { shiftKey: true }), true)?.command).toBe("zoomIn");
    expect(bindingOf(press("F", { shiftKey: true }), true)?.command).toBe("snapAll");
    expect(bindingOf(press("Z", { metaKey: true, shiftKey: true }), true)?.command).toBe("redo");
    expect(bindingOf(press("ArrowLeft", { altKey: true }), true)?.command).toBe("left");
  });

  it("leave the browser its own", () => {
    expect(bindingOf(press("n", { ctrlKey: true }), true)).toBeNull();
    expect(bindingOf(press("Tab"), true)).toBeNull();
  });

  it("do not answer question after question while held", () => {
    expect(bindingOf(press("n", { repeat: true }), true)).toBeNull();
    expect(bindingOf(press("ArrowUp", { repeat: true }), true)?.command).toBe("up");
  });

  it("that other parts of the page use are ours on the frames only", () => {
    expect(bindingOf(press("Enter"), false)).toBeNull();
    expect(bindingOf(press("0"), false)).toBeNull();
    expect(bindingOf(press("y"), false)?.command).toBe("yes");
  });

  it("are spelled for people", () => {
    expect(keyName(press(" "))).toBe("Space");
    expect(keyLabel("Shift+ArrowLeft")).toBe("Shift ←");
    expect(keyLabel("Ctrl+z")).toBe("Ctrl Z");
    expect(keyLabel("+")).toBe("+");
  });
});
