/** How many CSS px the page's unit of type has: more on a large screen, and what is drawn must grow with it. */
export function rem(): number {
  return parseFloat(getComputedStyle(document.documentElement).fontSize);
}
