export type Trouble =
  | 'rejected'
  | 'pending'
  | 'funds'
  | 'smart'
  | 'undeployed'
  | 'expired'
  | 'chain'
  | 'tab'
  | 'changed'
  | 'failed'

/** A reason to stop for which the page has a message. */
export class Stop extends Error {
  readonly trouble: Trouble
  constructor(trouble: Trouble) {
    super(trouble)
    this.trouble = trouble
  }
}

/**
 * Maps the error codes of EIP-1193 and EIP-1474. Some wallets wrap the code; others only describe the error in their
 * message.
 */
export function troubleOf(error: unknown): Trouble {
  if (error instanceof Stop) return error.trouble
  const { code, data, message } = (error ?? {}) as {
    code?: unknown
    data?: { originalError?: { code?: unknown } }
    message?: unknown
  }
  switch (data?.originalError?.code ?? code) {
    case 4001:
    case 4100:
      return 'rejected'
    case -32002:
      return 'pending'
    case 4200:
    case -32601:
      return 'smart'
    case 4900:
    case 4901:
      return 'chain'
    default:
      return /reject|declin|denied|cancel/i.test(String(message)) ? 'rejected' : 'failed'
  }
}
