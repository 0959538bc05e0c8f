/** What the page asks the program, one function a request. */
import type {
  AlignFrames,
  AnswerRow,
  CheckLandmarks,
  Checked,
  Conflict,
  FinishedMosaic,
  Forecast,
  GiveAnswer,
  LiveMosaic,
  MapKind,
  MosaicVersion,
  Outcome,
  PairMap,
  Proposal,
  Question,
  RemoveAnswer,
  SnapPoint,
  Snapped,
  State,
  Step,
  TracedVessel,
  TraceVessel,
} from "../model/messages";
import type { Tile } from "../model/pyramid";

/** The finished mosaic in every format. */
export const FORMATS = [
  ["mosaic.png", "PNG", "one file, unchanged pixels"],
  ["mosaic.jpg", "JPEG", "one small file, on white"],
  ["mosaic.tif", "TIFF", "a pyramid with OME data, for large mosaics"],
  ["mosaic.dzi.zip", "DeepZoom", "tiles for web pages, ZIP"],
  ["mosaic.zarr.zip", "OME-Zarr", "chunks for image analysis, ZIP"],
] as const;

export type ExportName =
  | "landmarks.csv"
  | "transforms.json"
  | "preview.png"
  | "project.zip"
  | (typeof FORMATS)[number][0];

/** A square window over the usable frames; `frames` 0 is all of them. */
export interface MapWindow {
  row: number;
  column: number;
  frames: number;
  size: number;
}

export interface Api {
  state(): Promise<State>;
  /** `person` is the name of who answers. */
  question(person: string): Promise<Question | null>;
  pair(i: number, j: number): Promise<Question>;
  proposal(i: number, j: number): Promise<Proposal | null>;
  forecast(i: number, j: number): Promise<Forecast>;
  mosaic(): Promise<LiveMosaic>;
  answers(): Promise<AnswerRow[]>;
  pairMap(kind: MapKind, window: MapWindow): Promise<PairMap>;
  give(answer: GiveAnswer): Promise<Outcome>;
  remove(removal: RemoveAnswer): Promise<Outcome>;
  undo(step: Step): Promise<Outcome>;
  redo(step: Step): Promise<Outcome>;
  check(landmarks: CheckLandmarks): Promise<Checked>;
  snap(point: SnapPoint): Promise<Snapped>;
  trace(strokes: TraceVessel): Promise<TracedVessel>;
  align(frames: AlignFrames): Promise<Proposal>;
  finish(step: Step): Promise<State>;
  finished(): Promise<FinishedMosaic | null>;
  tileAddress(edition: string, version: MosaicVersion, tile: Tile): string;
  resultAddress(name: string): string;
  frameAddress(frame: number): string;
  sheetAddress(sheet: number): string;
  readonly maskAddress: string;
  exportAddress(name: ExportName): string;
  readonly eventsAddress: string;
}

/** The program answered that it cannot, and why. */
export class RefusedError extends Error {
  constructor(
    readonly status: number,
    explanation: string,
  ) {
    super(explanation);
  }
}

/** Somebody else changed what the request is about. */
export class ConflictError extends Error {
  constructor(readonly conflict: Conflict) {
    super(conflict.explanation);
  }
}

/** The program did not answer at all. */
export class UnreachableError extends Error {
  constructor() {
    super("Smalti does not answer; look at the terminal in which you started it");
  }
}

/** `page` is what this page calls itself, so that each page is asked a question of its own. */
export function connect(page: string, root = "/api"): Api {
  const own = `?page=${encodeURIComponent(page)}`;
  const get = <T>(path: string) => ask<T>(`${root}/${path}`);
  const post = <T>(path: string, body: unknown) => ask<T>(`${root}/${path}`, body);
  return {
    state: () => get("state"),
    question: (person) => get(`question${own}&person=${encodeURIComponent(person)}`),
    pair: (i, j) => get(`pairs/${i}/${j}${own}`),
    proposal: (i, j) => get(`pairs/${i}/${j}/proposal`),
    forecast: (i, j) => get(`pairs/${i}/${j}/forecast${own}`),
    mosaic: () => get("mosaic"),
    answers: () => get("answers"),
    pairMap: (kind, { row, column, frames, size }) =>
      get(`maps/${kind}?row=${row}&column=${column}&frames=${frames}&size=${size}`),
    give: (answer) => post(`answers${own}`, answer),
    remove: (removal) => post(`answers/removal${own}`, removal),
    undo: (step) => post(`undo${own}`, step),
    redo: (step) => post(`redo${own}`, step),
    check: (landmarks) => post("check", landmarks),
    snap: (point) => post("snap", point),
    trace: (strokes) => post("trace", strokes),
    align: (frames) => post("align", frames),
    finish: (step) => post("finish", step),
    finished: () => get("finished"),
    tileAddress: (edition, version, { level, column, row }) =>
      `${root}/finished/${edition}/${version}/${level}/${column}_${row}.png`,
    resultAddress: (name) => `${root}/results/${encodeURIComponent(name)}`,
    frameAddress: (frame) => `${root}/frames/${frame}.jpg`,
    sheetAddress: (sheet) => `${root}/sheets/${sheet}.jpg`,
    maskAddress: `${root}/mask.png`,
    exportAddress: (name) => `${root}/exports/${name}`,
    eventsAddress: `${root}/events${own}`,
  };
}

async function ask<T>(address: string, body?: unknown): Promise<T> {
  const request: RequestInit =
    body === undefined
      ? {}
      : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let response: Response;
  let content: unknown;
  try {
    response = await fetch(address, request);
    content = await response.json();
  } catch {
    // No connection, or one that broke in the middle of the answer.
    throw new UnreachableError();
  }
  if (response.ok) return content as T;
  if (response.status === 409) throw new ConflictError(content as Conflict);
  throw new RefusedError(response.status, explanationOf(content, response.status));
}

function explanationOf(content: unknown, status: number): string {
  if (content !== null && typeof content === "object" && "explanation" in content) return String(content.explanation);
  return `Smalti answered with code ${status} and no explanation; look at the terminal`;
}
