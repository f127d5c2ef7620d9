export const transcript = {};
