/** Whether somebody is led through the first minute: until the first answer, or until they skip it, and never again. */
import { Cell } from "./observable";

const KEY = "smalti:guided";

export class Guide {
  readonly isOn: Cell<boolean>;

  constructor(private readonly storage: Storage) {
    this.isOn = new Cell(storage.getItem(KEY) === null);
  }

  end(): void {
    if (!this.isOn.value) return;
    this.isOn.set(false);
    try {
      this.storage.setItem(KEY, "done");
    } catch {
      // Where the browser keeps nothing, they are led again the next time.
    }
  }
}
