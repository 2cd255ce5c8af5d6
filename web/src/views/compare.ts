// To be written.

import type { View } from "../view";
import { both } from "../words";

export const compare: View = {
  name: "compare",
  title: both("Side by side", "并排比较"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
