// A number as a colour: blue −1, red +1, as in the page's maps.

import { colour } from "../colours";

const MOST = 1.5;

export const cellColour = (value: number, dark: boolean) => colour("diverging", value, MOST, dark);
