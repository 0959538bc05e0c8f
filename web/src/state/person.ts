/** The name of who answers in this browser: it stands with every answer. */
import { Cell } from "./observable";

const KEY = "smalti:person";
export const LONGEST_NAME = 80;

export class Person {
  readonly name: Cell<string>;

  constructor(private readonly storage: Storage) {
    this.name = new Cell(storage.getItem(KEY) ?? "");
  }

  rename(name: string): void {
    this.name.set(name.trim().slice(0, LONGEST_NAME));
    try {
      this.storage.setItem(KEY, this.name.value);
    } catch {
      // Where the browser keeps nothing, the name holds until the page is closed.
    }
  }
}
