/** Colours of what is drawn over frames: bright in both themes, because the frames are the ground. */

export const PALETTE = {
  i: "#ff9d5c",
  j: "#56c2ff",
  open: "#ffe14d",
  cursor: "#d2a8ff",
  good: "#4ade80",
  unchecked: "#f4f5f6",
  warn: "#fbbf24",
  bad: "#ff7b72",
  off: "#b4bac0",
} as const;
