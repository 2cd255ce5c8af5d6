// All views in the order of the story.

import type { View } from "../view";
import { attention } from "./attention";
import { audit } from "./audit";
import { bias } from "./bias";
import { binary } from "./binary";
import { compare } from "./compare";
import { extrapolation } from "./extrapolation";
import { layouts } from "./layouts";
import { order } from "./order";
import { paths } from "./paths";
import { precision } from "./precision";
import { rotaryPair } from "./rotary_pair";
import { shift } from "./shift";
import { similarity } from "./similarity";
import { table } from "./table";
import { terms } from "./terms";
import { wavelengths } from "./wavelengths";

export const VIEWS: View[] = [
  table, wavelengths, binary, shift, similarity, order, attention, terms, rotaryPair, layouts, bias, compare, extrapolation, precision, paths, audit,
];
