// A part of a picture that is dragged, or moved with the arrow keys: a slider that has no other form than the picture.

export interface Point {
  x: number;
  y: number;
}

export interface Handle {
  label: string;
  /** What it stands at, as a number between `from` and `to`, and as it is said. */
  now(): number;
  from: number;
  to: number;
  value(): string;
  /** `at` is null where a key begins it. */
  start?(at: Point | null): void;
  /** In the picture's own units. */
  move(at: Point, event: PointerEvent): void;
  end?(): void;
  /** One step of the arrow keys, to lower or higher; ten of them with Page Up and Page Down. */
  key(by: number): void;
}

const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };

/** Returns what says the value anew, for changes that come from elsewhere. */
export function draggable(element: SVGElement | HTMLElement, picture: SVGSVGElement | HTMLElement, handle: Handle): () => void {
  const say = () => {
    element.setAttribute("aria-valuenow", String(Math.round(1000 * handle.now()) / 1000));
    element.setAttribute("aria-valuetext", handle.value());
  };
  for (const [name, value] of Object.entries({ tabindex: 0, role: "slider", "aria-label": handle.label, "aria-valuemin": handle.from, "aria-valuemax": handle.to })) element.setAttribute(name, String(value));
  element.classList.add("drag");
  say();
  const point = (event: PointerEvent): Point => {
    const box = picture.getBoundingClientRect();
    const zoom = picture instanceof SVGSVGElement ? picture.viewBox.baseVal.width / box.width : 1;
    return { x: (event.clientX - box.left) * zoom, y: (event.clientY - box.top) * zoom };
  };
  element.addEventListener("pointerdown", (begun) => {
    const event = begun as PointerEvent;
    event.preventDefault();
    element.focus({ preventScroll: true });
    element.setPointerCapture(event.pointerId);
    handle.start?.(point(event));
    const go = (next: Event) => {
      handle.move(point(next as PointerEvent), next as PointerEvent);
      say();
    };
    const stop = () => {
      for (const kind of ["pointerup", "pointercancel"]) element.removeEventListener(kind, stop);
      element.removeEventListener("pointermove", go);
      handle.end?.();
      say();
    };
    element.addEventListener("pointermove", go);
    for (const kind of ["pointerup", "pointercancel"]) element.addEventListener(kind, stop);
  });
  element.addEventListener("keydown", (pressed) => {
    const event = pressed as KeyboardEvent;
    const by = STEPS[event.key];
    if (by === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation(); // arrow keys elsewhere lead to the next chapter
    handle.start?.(null);
    handle.key(by);
    handle.end?.();
    say();
  });
  return say;
}
