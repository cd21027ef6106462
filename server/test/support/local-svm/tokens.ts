import {
  type Address,
  address,
  type EncodedAccount,
  getAddressCodec,
  getAddressEncoder,
  getProgramDerivedAddress,
  getU64Codec,
  lamports,
  type MaybeEncodedAccount,
} from '@solana/kit'

/** SPL Token accounts as bytes, as far as the local chain reads and plants them. */
export type Mint = { readonly address: string; readonly decimals: number }
export type TokenAccount = { readonly mint: Address; readonly owner: Address; readonly units: bigint }

export const tokenProgram = address('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA')
const token2022Program = address('TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb')
const associatedTokenProgram = address('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL')
const tokenPrograms: readonly Address[] = [tokenProgram, token2022Program]

const mintBytes = 82
const accountBytes = 165
/** The rent for these sizes, as on public clusters: (bytes + 128) × 6,960 lamports. */
const lamportsPerByte = 6_960n
const overheadBytes = 128n

/** The associated token account, where wallets keep a token by default. */
export async function findTokenAccount(owner: string, mint: string): Promise<Address> {
  const encode = getAddressEncoder().encode
  const [found] = await getProgramDerivedAddress({
    programAddress: associatedTokenProgram,
    seeds: [encode(address(owner)), encode(tokenProgram), encode(address(mint))],
  })
  return found
}

/** A mint without mint and freeze authorities; the chain plants balances instead. */
export function encodeMint(mint: Mint): EncodedAccount {
  const data = new Uint8Array(mintBytes)
  data[44] = mint.decimals
  data[45] = 1
  return account(address(mint.address), data)
}

export function encodeTokenAccount(at: Address, { mint, owner, units }: TokenAccount): EncodedAccount {
  const data = new Uint8Array(accountBytes)
  data.set(getAddressCodec().encode(mint), 0)
  data.set(getAddressCodec().encode(owner), 32)
  data.set(getU64Codec().encode(units), 64)
  data[108] = 1
  return account(at, data)
}

export function decodeTokenAccount(found: MaybeEncodedAccount): TokenAccount | null {
  if (!found.exists || !tokenPrograms.includes(found.programAddress)) return null
  // Multisigs of SPL Token are 355 bytes; Token-2022 marks longer accounts with their kind.
  const { data } = found
  if (data.length !== accountBytes && (data.length === 355 || data[accountBytes] !== 2)) return null
  return {
    mint: getAddressCodec().decode(data, 0),
    owner: getAddressCodec().decode(data, 32),
    units: getU64Codec().decode(data, 64),
  }
}

export function decodeDecimals(found: MaybeEncodedAccount): number | null {
  if (!found.exists || !tokenPrograms.includes(found.programAddress)) return null
  return found.data[44] ?? null
}

/** An amount in the form of RPC answers. */
export function uiAmount(units: bigint, decimals: number) {
  const digits = `${units}`.padStart(decimals + 1, '0')
  const split = digits.length - decimals
  const text = decimals === 0 ? digits : `${digits.slice(0, split)}.${digits.slice(split)}`
  const uiAmountString = text.includes('.') ? text.replace(/\.?0+$/, '') : text
  return { amount: `${units}`, decimals, uiAmount: +uiAmountString, uiAmountString }
}

function account(at: Address, data: Uint8Array): EncodedAccount {
  return {
    address: at,
    data,
    executable: false,
    lamports: lamports((BigInt(data.length) + overheadBytes) * lamportsPerByte),
    programAddress: tokenProgram,
    space: BigInt(data.length),
  }
}
