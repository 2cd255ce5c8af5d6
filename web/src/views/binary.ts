// To be written.

import type { View } from "../view";
import { both } from "../words";

export const binary: View = {
  name: "binary",
  title: both("Counting with clocks", "用时钟数数"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
