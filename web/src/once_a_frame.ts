// Work that is done at most once a frame, however often it is asked for.
//
//   asked   │ 1   2  3 │        │ 4      │        a frame ends where │ stands
//   done    │ 1        │ 3      │ 4      │        at once if nothing was done in this frame; else in the next, with what is set then

/** `finish` does what still waits: before a key or a click that counts on what is drawn. */
export function onceAFrame(work: () => void): { ask(): void; finish(): void } {
  let [held, wanted] = [false, false];
  function ask(): void {
    wanted = held;
    if (held) return;
    held = true;
    // A task after the frame, whether `work` ran before its callbacks or among them.
    requestAnimationFrame(() => setTimeout(() => {
      held = false;
      if (wanted) ask();
    }));
    work();
  }
  function finish(): void {
    if (!wanted) return;
    wanted = false;
    work();
  }
  return { ask, finish };
}
