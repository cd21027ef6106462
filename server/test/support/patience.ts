/**
 * How long a test waits for something before it says that it never happens. A machine that is shared with others can
 * pause for half a minute at a time, so the time is far longer than anything takes.
 */
export const patienceMs = 240_000
