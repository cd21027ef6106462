/** Bytes as JSON-RPC writes them. Everything that is compared is lower case. */
export type Hex = `0x${string}`
