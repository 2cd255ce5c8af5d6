// To be written.

import type { View } from "../view";
import { both } from "../words";

export const order: View = {
  name: "order",
  title: both("我爱你, 你爱我", "我爱你与你爱我"),
  idea: both("", ""),
  notice: [],
  own: {},
  controls: [],
  build: () => () => {},
};
