// Count: a number and the noun it counts.

export const count = (number: number, one: string, many: string): string => `${number.toLocaleString()} ${number === 1 ? one : many}`;
