// Play, pause, step and speed for one parameter of the page. Nothing moves before play is pressed.

import { h } from "../dom";
import { clamped, type Stage } from "../view";
import type { Parameter, State } from "../source";

export interface PlayerAbout {
  /** The parameter that moves, and the one that holds the speed in steps a second. */
  name: string;
  speed: string;
  parameter: Parameter;
  /** Called instead of `stage.set` in between two whole steps. */
  between?: (value: number) => void;
  /** Where it ends; the parameter's `to` unless said. */
  end?: () => number;
  /** What the reader may choose from; 1 … 100 unless said. */
  speeds?: number[];
}

export interface Player {
  element: HTMLElement;
  draw(state: State): void;
}

const SPEEDS = [1, 2, 5, 10, 20, 50, 100];

export function player(stage: Stage, about: PlayerAbout): Player {
  const offered = about.speeds ?? SPEEDS;
  let playing = 0;
  let value = 0;
  let speed = 10;
  let whole = -1;
  let before = 0;
  let told = 0;
  const play = h("button", { type: "button", class: "primary", "data-role": "play", click: toggle });
  const step = (by: number, symbol: string, label: string) =>
    h("button", { type: "button", "aria-label": label, "data-role": by < 0 ? "back" : "step", click: () => go(Math.round(value) + by) }, symbol);
  const speeds = h("select", { "data-role": "speed", change: () => stage.set({ [about.speed]: Number(speeds.value) }) }, ...offered.map((n) => h("option", { value: n }, `${n}/s`)));
  const element = h("div", { class: "player", role: "group", "aria-label": stage.t({ en: "Play", zh: "播放" }) },
    step(-1, "‹", stage.t({ en: "One back", zh: "后退一步" })), play, step(1, "›", stage.t({ en: "One on", zh: "前进一步" })),
    h("label", {}, stage.t({ en: "Speed", zh: "速度" }), speeds));
  const end = () => about.end?.() ?? about.parameter.to ?? 0;

  function go(next: number): void {
    stop();
    stage.set({ [about.name]: clamped(Math.min(next, end()), about.parameter) });
  }
  function stop(): void {
    cancelAnimationFrame(playing);
    playing = 0;
    label();
  }
  function toggle(): void {
    if (playing) {
      stop();
      stage.set({ [about.name]: clamped(Math.round(value), about.parameter) });
      return;
    }
    if (value >= end()) value = about.parameter.from ?? 0;
    before = performance.now();
    playing = requestAnimationFrame(frame);
    label();
  }
  function frame(now: number): void {
    value = Math.min(value + ((now - before) / 1000) * speed, end());
    before = now;
    const floor = Math.floor(value);
    if (value >= end()) {
      stop();
      stage.set({ [about.name]: clamped(end(), about.parameter) });
      return;
    }
    playing = requestAnimationFrame(frame);
    // Where the drawing itself moves in between, what is written beside it follows a dozen times a second.
    if (floor !== whole && (!about.between || !stage.motion || now - told > 80)) {
      whole = floor;
      told = now;
      stage.set({ [about.name]: clamped(floor, about.parameter) });
    }
    if (stage.motion) about.between?.(value);
  }
  function label(): void {
    play.textContent = playing ? stage.t({ en: "Pause", zh: "暂停" }) : stage.t({ en: "Play", zh: "播放" });
    play.setAttribute("aria-pressed", String(!!playing));
    stage.root.toggleAttribute("data-playing", !!playing);
  }
  label();
  stage.leaving(() => cancelAnimationFrame(playing));
  return {
    element,
    draw(state) {
      if (!playing) [value, whole] = [state[about.name] as number, Math.floor(state[about.name] as number)];
      speed = state[about.speed] as number;
      speeds.value = String(offered.reduce((best, n) => (Math.abs(n - speed) < Math.abs(best - speed) ? n : best)));
    },
  };
}
