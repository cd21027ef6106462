/** What takes the place of the address of a payer whose data was erased. */

/** Whether this stands in place of an erased payer's address. */
export function isErased(payer: string): boolean {
  return payer === erasedLike(payer)
}

/** An address of the same form that nobody can pay from. Not the zero address: tokens that are minted come from there. */
export function erasedLike(payer: string): string {
  return payer.startsWith('0x') ? `0x${'0'.repeat(32)}e2a5ed00` : '1'.repeat(32)
}
