/** Words of the list of sessions and of what stands around a session. */
export const sessions = {
  openList: 'Show sessions',
  create: 'New session',
  administration: 'Administration',
};
