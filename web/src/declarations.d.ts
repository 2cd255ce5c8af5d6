declare module "*.css" {
  const text: string;
  export default text;
}

/** Made by build.mjs: the view of every Python file in explorer/views that has an ORDER, in that order. */
declare module "all-views" {
  export const VIEWS: import("./view").View[];
}
