// Work that is done at most once a frame, however often it is asked for.
//
//   asked   │ 1   2  3 │        │ 4      │        a frame ends where │ stands
//   done    │ 1        │ 3      │ 4      │        at once if nothing was done in this frame; else in the next, with what is set then

export function onceAFrame(work: () => void): () => void {
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
  return ask;
}
