/** A wallet's address in its family's canonical form, or what is wrong with it. */
export type ParsedAddress =
  | { readonly address: string }
  | { readonly refusal: string; readonly fault: AddressFault }

export type AddressFault = 'form' | 'checksum' | 'nobody' | 'token'
