/**
 * Signature checks per second, compared with viem's `verifyTypedData`: `npm run bench:verify`.
 *
 * Both start from the same parsed authorizations and hex signatures, from many different payers, and decide whether the
 * payer signed. They take turns on one thread; the ratio is the median of five rounds, because rates from different
 * runs or from a busy machine are not comparable.
 */
import assert from 'node:assert/strict'
import { verifyTypedData } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { type Authorization, digest } from '../server/src/chains/evm/eip3009.ts'
import { isNative, recoverSigner } from '../server/src/chains/evm/recover.ts'
import { median, say } from './figures.ts'

const rounds = 5
const roundMs = 400
const payers = 64

type Signed = { readonly authorization: Authorization; readonly signature: `0x${string}` }

const domain = {
  name: 'USD Coin',
  version: '2',
  chainId: 8453,
  verifyingContract: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
} as const
const types = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const
const primaryType = 'TransferWithAuthorization'

const inputs = await Promise.all(Array.from({ length: payers }, (_, i) => sign(i)))
await checkBothJudge()
await measure(check)
await measure(checkByViem)

const ours: number[] = []
const theirs: number[] = []
const ratios: number[] = []
for (let round = 0; round < rounds; round++) {
  const perSecond = await measure(check)
  const viemPerSecond = await measure(checkByViem)
  ours.push(perSecond)
  theirs.push(viemPerSecond)
  ratios.push(perSecond / viemPerSecond)
  say(`round ${round + 1}: ${Math.round(perSecond)} per second, viem ${Math.round(viemPerSecond)}`)
}
say(isNative ? 'using libsecp256k1' : 'using @noble/curves: the native build of secp256k1 does not load here')
const result = {
  ratio: Math.round(median(ratios) * 10) / 10,
  perSecond: Math.round(median(ours)),
  viemPerSecond: Math.round(median(theirs)),
}
say(JSON.stringify(result))

function check({ authorization, signature }: Signed): boolean {
  const signer = recoverSigner(digest(domain, authorization), Buffer.from(signature.slice(2), 'hex'))
  return signer?.address === authorization.from
}

function checkByViem({ authorization, signature }: Signed): Promise<boolean> {
  return verifyTypedData({
    domain,
    types,
    primaryType,
    message: authorization,
    address: authorization.from,
    signature,
  })
}

/** Makes sure that both sides reject forgeries: a check that accepts everything would be fast. */
async function checkBothJudge(): Promise<void> {
  for (const input of inputs) {
    const { authorization, signature } = input
    const forged = { authorization: { ...authorization, value: authorization.value + 1n }, signature }
    assert(check(input) && (await checkByViem(input)))
    assert(!check(forged) && !(await checkByViem(forged)))
  }
}

async function measure(verify: (input: Signed) => boolean | Promise<boolean>): Promise<number> {
  const start = performance.now()
  let checks = 0
  let elapsedMs = 0
  for (; elapsedMs < roundMs; checks++) {
    const input = inputs[checks % inputs.length]
    const answer = input !== undefined && verify(input)
    assert(typeof answer === 'boolean' ? answer : await answer)
    elapsedMs = performance.now() - start
  }
  return (checks * 1000) / elapsedMs
}

async function sign(i: number): Promise<Signed> {
  const account = privateKeyToAccount(generatePrivateKey())
  const authorization: Authorization = {
    from: account.address.toLowerCase() as `0x${string}`,
    to: `0x${'50'.repeat(20)}`,
    value: 1_000_000n + BigInt(i),
    validAfter: 0n,
    validBefore: 2_000_000_000n,
    nonce: generatePrivateKey(),
  }
  return {
    authorization,
    signature: await account.signTypedData({ domain, types, primaryType, message: authorization }),
  }
}
