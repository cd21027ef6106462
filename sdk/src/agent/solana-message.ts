/** Reads Solana transactions and addresses from bytes, as far as a payer needs. */
export type Message = {
  /** The bytes that are signed. */
  readonly bytes: Uint8Array<ArrayBuffer>
  /** The wallets that must sign, in order. The first pays the fee. */
  readonly signers: readonly string[]
  /** Where the signatures begin, 64 bytes each. */
  readonly signaturesAt: number
  readonly instructions: readonly {
    readonly program: string
    readonly accounts: readonly string[]
    readonly data: Uint8Array
  }[]
}

/** Throws if the bytes are not a transaction, refer to accounts that it does not list, or have a remainder. */
export function readMessage(transaction: Uint8Array): Message {
  const [signatures, signaturesAt] = readCount(transaction, 0)
  const start = signaturesAt + signatures * 64
  const bytes = transaction.slice(start)
  // A set first bit marks a version byte; without it the byte already belongs to the message.
  const isVersioned = at(bytes, 0) >= 128
  let place = isVersioned ? 1 : 0
  if (isVersioned && at(bytes, 0) !== 128) throw new RangeError('unknown transaction version')
  if (at(bytes, place) !== signatures) throw new RangeError('the number of signatures is wrong')
  const take = (length: number) => {
    const taken = bytes.slice(place, place + length)
    if (taken.length !== length) throw new RangeError('the transaction is too short')
    place += length
    return taken
  }
  const count = () => {
    const [value, next] = readCount(bytes, place)
    place = next
    return value
  }
  const times = <Item>(length: number, read: () => Item) => Array.from({ length }, read)
  take(3)
  const accounts = times(count(), () => toBase58(take(32)))
  // The blockhash.
  take(32)
  const named = (index: number) => accounts[index] ?? missing()
  const instructions = times(count(), () => {
    const program = named(at(take(1), 0))
    return { program, accounts: [...take(count())].map(named), data: take(count()) }
  })
  if (isVersioned && count() !== 0) throw new RangeError('address lookup tables are not supported')
  if (place !== bytes.length) throw new RangeError('the transaction has trailing bytes')
  return { bytes, signers: accounts.slice(0, signatures), signaturesAt, instructions }
}

function missing(): never {
  throw new RangeError('an account is missing')
}

function at(bytes: Uint8Array, place: number): number {
  return bytes[place] ?? missing()
}

/** A length is one to three bytes with seven bits each, lowest first. */
function readCount(bytes: Uint8Array, place: number): [value: number, next: number] {
  let value = 0
  for (let i = 0; i < 3; i++) {
    const byte = at(bytes, place + i)
    value += (byte & 127) << (7 * i)
    if (byte < 128) return [value, place + i + 1]
  }
  throw new RangeError('malformed length')
}

const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

export function toBase58(bytes: Uint8Array): string {
  let value = toNumber(bytes)
  let text = ''
  for (; value > 0n; value /= 58n) text = alphabet.charAt(Number.parseInt(`${value % 58n}`, 10)) + text
  const zeros = bytes.findIndex((byte) => byte !== 0)
  return '1'.repeat(zeros === -1 ? bytes.length : zeros) + text
}

/** Decodes base58; throws unless the text encodes exactly `length` bytes. */
export function fromBase58(text: string, length: number): Uint8Array<ArrayBuffer> {
  let value = 0n
  for (const character of text) {
    const digit = alphabet.indexOf(character)
    if (digit === -1) throw new TypeError('The text is not base58.')
    value = value * 58n + BigInt(digit)
  }
  const bytes = new Uint8Array(length)
  for (let i = length - 1; i >= 0; i--, value >>= 8n) bytes[i] = Number.parseInt(`${value & 255n}`, 10)
  if (value > 0n || toBase58(bytes) !== text)
    throw new TypeError(`The text is not the base58 of ${length} bytes.`)
  return bytes
}

function toNumber(bytes: Uint8Array): bigint {
  return bytes.reduce((value, byte) => value * 256n + BigInt(byte), 0n)
}

/**
 * The account where a wallet holds a token. Its address is derived from wallet, token program and mint, and must not be
 * a point on the curve, so that no key for it exists: the last seed byte counts down until that holds.
 */
export async function tokenAccountOf(owner: string, mint: string): Promise<string> {
  const program = fromBase58('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL', 32)
  const seeds = [owner, 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', mint].map((one) => fromBase58(one, 32))
  const end = new TextEncoder().encode('ProgramDerivedAddress')
  for (let last = 255; last >= 0; last--) {
    const content = new Uint8Array([...seeds.flatMap((seed) => [...seed]), last, ...program, ...end])
    const found = new Uint8Array(await crypto.subtle.digest('SHA-256', content))
    if (!isOnCurve(found)) return toBase58(found)
  }
  return missing()
}

const p = 2n ** 255n - 19n
const d = 37095705934669439343138083508754565189542113879843219016388785533085940283555n

/** Ed25519: −x² + y² = 1 + d·x²·y². The bytes are y, little-endian; the top bit is the sign of x. */
function isOnCurve(bytes: Uint8Array): boolean {
  const y = toNumber(bytes.slice().reverse()) & (2n ** 255n - 1n)
  const [above, below] = [modulo(y * y - 1n), modulo(d * y * y + 1n)]
  // x² = above / below is a square exactly when above · below is one.
  const square = modulo(above * below)
  return square === 0n || power(square, (p - 1n) / 2n) === 1n
}

function modulo(value: bigint): bigint {
  return ((value % p) + p) % p
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n
  for (let factor = base; exponent > 0n; exponent >>= 1n, factor = modulo(factor * factor))
    if (exponent & 1n) result = modulo(result * factor)
  return result
}
