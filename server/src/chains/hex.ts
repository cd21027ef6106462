/** Bytes as JSON-RPC writes them. Hex that is compared is always lower case. */
export type Hex = `0x${string}`
