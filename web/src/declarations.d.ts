declare module "*.css" {
  const text: string;
  export default text;
}

/** The program that a view prints. */
declare module "*.txt" {
  const text: string;
  export default text;
}

/** In base64. */
declare module "*.woff2" {
  const text: string;
  export default text;
}

/** Made by build.mjs: the files of computed/, by the names of their views. */
declare module "all-computed" {
  export const COMPUTED: Record<string, import("./in_page").Computed>;
}

/** Made by build.mjs: the view of every Python file in explorer/views that has an ORDER, in that order. */
declare module "all-views" {
  export const VIEWS: import("./view").View[];
}

/** In base64. */
declare module "*.wasm" {
  const text: string;
  export default text;
}

/** Made by build.mjs: stretch/worker.ts with all that it needs, as the text of a script. */
declare module "worker-code" {
  const text: string;
  export default text;
}
