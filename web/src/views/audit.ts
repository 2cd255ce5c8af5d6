// To be written.

import type { View } from "../view";
import { both } from "../words";

export const audit: View = {
  name: "audit",
  title: both("Check your own table", "检查你自己的表"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
