import { anyText, integer, nativeAmount, type Setting, solAmount } from './parse-setting.ts'

/** What settlers' keys may sign, and which process holds them. */
export type SigningLimits = {
  readonly gasPerTransaction: bigint
  /** In wei. Null: not limited. */
  readonly etherPerTransaction: bigint | null
  readonly etherPerDay: bigint | null
  /** In lamports. Null: not limited. */
  readonly solPerDay: bigint | null
}

export type SigningConfig = SigningLimits & {
  readonly signerSocket: string
  readonly signerSocketMode: number
}

export const signingSettings: { readonly [Key in keyof SigningConfig]: Setting<SigningConfig[Key]> } = {
  signerSocket: {
    name: 'SIGNER_SOCKET',
    about:
      'The Unix socket of signer, the process that alone reads SETTLER_KEYS_FILE and signs for work. Empty: work reads the keys itself.',
    fallback: '',
    parse: anyText,
  },
  signerSocketMode: {
    name: 'SIGNER_SOCKET_MODE',
    about:
      'Who may ask signer: 600 for its own user, 660 for its group too, which then must have no member but work.',
    fallback: '600',
    parse: (text) =>
      text === '600' || text === '660'
        ? { value: Number.parseInt(text, 8) }
        : { mistake: 'must be 600 or 660' },
  },
  gasPerTransaction: {
    name: 'SETTLER_GAS_PER_TRANSACTION',
    about: 'The most gas that a settler’s key signs in one transaction.',
    fallback: '16777216',
    parse: (text) => {
      const parsed = integer(200_000, 30_000_000)(text)
      return parsed.value === undefined ? { mistake: parsed.mistake } : { value: BigInt(parsed.value) }
    },
  },
  etherPerTransaction: {
    name: 'SETTLER_ETH_PER_TRANSACTION',
    about:
      'What one transaction of a settler may cost at most on a live network, in ETH. Empty: only the network’s limits count.',
    fallback: '0.1',
    parse: nativeAmount,
  },
  etherPerDay: {
    name: 'SETTLER_ETH_PER_DAY',
    about:
      'What a settler’s key may sign away per day (UTC) on each live network, in ETH, counted by the most that each transaction can cost: about five times what it usually costs. Beyond it payments get 503 until the next day. Empty: no limit.',
    fallback: '0.25',
    parse: nativeAmount,
  },
  solPerDay: {
    name: 'SETTLER_SOL_PER_DAY',
    about: 'The same on live Solana networks, in SOL.',
    fallback: '1',
    parse: solAmount,
  },
}
