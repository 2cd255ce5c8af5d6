// To be written.

import type { View } from "../view";
import { both } from "../words";

export const precision: View = {
  name: "precision",
  title: both("How many digits are left", "还剩几位有效数字"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
