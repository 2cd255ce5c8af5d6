// Motion that a reader can do without: where less is wanted, only its end is drawn. A film has a time of its own, which
// passes from picture to picture, however long one of them takes.

interface Time {
  /** Both return what stops them. */
  next(draw: (now: number) => void): () => void;
  after(milliseconds: number, then: () => void): () => void;
}

const real: Time = {
  next(draw) {
    const frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  },
  after(milliseconds, then) {
    const timer = setTimeout(then, milliseconds);
    return () => clearTimeout(timer);
  },
};
/** Of what begins now. */
let time = real;

/** What `begin` starts, and all that follows from it, moves with the calls of the function that is returned: by so many
 * milliseconds, until nothing is left to move. */
export function filmed(begin: () => void): (milliseconds: number) => boolean {
  let now = 0;
  let due: { at: number; run: (now: number) => void }[] = [];
  const add = (at: number, run: (now: number) => void) => {
    const one = { at, run };
    due.push(one);
    return () => void (due = due.filter((other) => other !== one));
  };
  const film: Time = { next: (draw) => add(0, draw), after: (milliseconds, then) => add(now + milliseconds, then) };
  const during = (run: () => void) => {
    [time] = [film];
    try {
      run();
    } finally {
      time = real;
    }
  };
  during(begin);
  return (milliseconds) => {
    now += milliseconds;
    const ready = due.filter(({ at }) => at <= now);
    due = due.filter(({ at }) => at > now);
    during(() => ready.forEach(({ run }) => run(now)));
    return due.length > 0;
  };
}

export const still = () => time === real && matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Slow at both ends: 4x³, and the same from the other side. */
export const ease = (share: number) => (share < 0.5 ? 4 * share ** 3 : 1 - (2 - 2 * share) ** 3 / 2);

export const mix = (from: number, to: number, share: number) => from + (to - from) * share;

export const clamp = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);

/** Calls `draw` with 0 … 1 once a frame, then `then`. Returns what stops it. */
export function animate(milliseconds: number, draw: (share: number) => void, then: () => void = () => {}): () => void {
  if (still()) {
    draw(1);
    then();
    return () => {};
  }
  const mine = time;
  let stop = () => {};
  let begun: number | null = null;
  const step = (now: number) => {
    begun ??= now;
    const share = Math.min((now - begun) / milliseconds, 1);
    draw(share);
    if (share < 1) stop = mine.next(step);
    else then();
  };
  stop = mine.next(step);
  return () => stop();
}

/** `then` after a pause. Returns what stops it. */
export function after(milliseconds: number, then: () => void): () => void {
  return time.after(milliseconds, then);
}
