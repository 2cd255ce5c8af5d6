// To be written.

import type { View } from "../view";
import { both } from "../words";

export const terms: View = {
  name: "terms",
  title: both("Four terms of a score", "分数的四项"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
