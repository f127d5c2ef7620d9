export const composer = {};
