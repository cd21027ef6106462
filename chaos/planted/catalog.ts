/**
 * Known bugs, each a patch beside this file, and what must catch it: a test of the server or a run of the chaos harness,
 * by the name it fails under. A harness that finds nothing in sound code has shown little; one that finds these has
 * shown that it looks.
 */
export type Planted = {
  /** Of the patch, without its ending. */
  readonly name: string
  /** What the bug is, in a sentence. */
  readonly about: string
  /** Caught only when a test's patience of minutes ends: left out where time is short. */
  readonly isSlow?: boolean
} & (
  | {
      readonly file: string /** The test that must fail, or what stands in its name. */
      readonly test: string
    }
  | {
      readonly chaos: readonly string[] /** The invariant that must be broken. */
      readonly invariant: string
    }
)

const payments = 'server/test/payments'
const flows = 'server/test/flows'
const events = 'server/test/events'

export const catalog: readonly Planted[] = [
  {
    name: 'unresolved-index-dropped',
    about: 'Two signatures of one checkout that arrive together are both claimed.',
    file: `${payments}/adversity/races.test.ts`,
    test: 'of two payments for one checkout in one batch, one is claimed and the other is not',
  },
  {
    name: 'broadcast-before-commit',
    about: 'Signed bytes leave before the database has them.',
    chaos: ['--plan', 'freeze', '--seconds', '10', '--buyers', '10', '--seed', '7'],
    invariant: 'I6',
  },
  {
    name: 'terms-while-restoring',
    about: 'After a restore, payers are asked to sign before the chain was read.',
    file: `${payments}/crash/restore.test.ts`,
    test: 'a database put back to an earlier point loses no payment and charges nobody twice',
  },
  {
    name: 'terms-while-processing',
    about: 'Whoever asks while a payment is under way is asked to sign another.',
    chaos: ['--plan', 'chain', '--seconds', '15', '--buyers', '20', '--seed', '7'],
    invariant: 'I9',
  },
  {
    name: 'idempotency-key-not-unique',
    about: 'Nothing keeps two requests with one key apart.',
    file: `${flows}/idempotency.test.ts`,
    test: 'requests at once with one key, through two processes, make one checkout and get one answer',
  },
  {
    name: 'answer-made-anew',
    about: 'A repeated create gets a fresh answer instead of the first one.',
    file: `${flows}/idempotency.test.ts`,
    test: 'a repeated request gets the first answer byte for byte, and makes nothing new',
  },
  {
    name: 'reserved-amount-not-unique',
    about: 'Two checkouts may wait for the same amount at the same address.',
    file: 'server/test/transfers/reserve.test.ts',
    test: 'of many that want the same few amounts in the same moment, each amount goes to one',
  },
  {
    name: 'time-out-answered-402',
    about: 'A payment whose fate is not known in time is answered with an invitation to sign again.',
    file: `${payments}/availability.test.ts`,
    test: '13. not known within 25 s: 202 with Retry-After and the transaction; the same payment gets 200 once it is',
  },
  {
    name: 'refusal-not-looked-at-again',
    about: 'A duplicate that simulates after its twin was mined is refused instead of told that it paid.',
    file: `${payments}/adversity/twins.test.ts`,
    test: 'a duplicate that simulates after its twin was mined gets the twin’s answer',
  },
  {
    name: 'sweep-decides-expiry',
    about: 'A checkout past its time can be paid until a sweep has marked it.',
    file: `${flows}/pay.test.ts`,
    test: 'EXPIRED, CANCELED, or OPEN past its time: 410, and no terms',
  },
  {
    name: 'used-nonce-taken-for-paid',
    about: 'A nonce that was spent on another recipient counts as the payment.',
    file: `${payments}/adversity/decoys.test.ts`,
    test: 'a nonce that its payer spends on another recipient never completes the checkout',
  },
  {
    name: 'pair-by-transaction',
    about:
      'Any Transfer behind AuthorizationUsed in its transaction counts as its payment, not the next log alone.',
    file: 'server/src/chains/evm/eip3009.test.ts',
    test: 'a Transfer of another payer, behind a gap, in another transaction, block or token pays nothing',
  },
  {
    name: 'sent-payment-rejected',
    about: 'A payment that was committed for sending can still be rejected.',
    file: `${payments}/adversity/races.test.ts`,
    test: 'of a rejection and a broadcast of the same authorization, exactly one happens',
  },
  {
    name: 'claim-moves-first',
    about: 'A checkout is moved to PROCESSING before it is known that the authorization is free.',
    file: `${payments}/adversity/races.test.ts`,
    test: 'an authorization that another checkout has claimed moves no checkout',
  },
  {
    name: 'lease-without-fence',
    about: 'A lane that lost its lease may still take a nonce.',
    file: `${payments}/settlers.test.ts`,
    test: 'a nonce is given only to the holder of the newest lease, and not once the settler drains',
  },
  {
    name: 'no-parent-check',
    about: 'The follower does not notice that a block does not follow the one before.',
    isSlow: true,
    file: `${payments}/crash/reorgs.test.ts`,
    test: 'reorganisations of 1 to',
  },
  {
    name: 'orphans-stay-credited',
    about: 'Credits of blocks that left the chain go on counting.',
    file: `${payments}/finality.test.ts`,
    test: 'a payment that the chain takes back is sent again with the same bytes, and completes the checkout again',
  },
  {
    name: 'one-node-is-enough',
    about: 'One node’s word that a nonce is unused lets a payment be given up for dead.',
    isSlow: true,
    file: `${payments}/crash/rpc-faults.test.ts`,
    test: 'a payment that one node calls unused is not given up for dead',
  },
  {
    name: 'safe-blocks-not-read-again',
    about: 'What the first reading of a block missed is never found.',
    isSlow: true,
    file: `${payments}/crash/rpc-faults.test.ts`,
    test: 'a payment that one node hides is found through the other',
  },
  {
    name: 'signature-kept-as-sent',
    about: 'A form of signature that the token refuses is sent to it all the same.',
    file: `${payments}/wallets.test.ts`,
    test: 'a signature of 64 bytes, with v of 0 or 1, with a high s or in upper case pays like any other',
  },
  {
    name: 'bound-nonce-ignored',
    about: 'A stolen signature pays for a thief’s checkout although its nonce names the victim’s.',
    file: `${payments}/wallets.test.ts`,
    test: 'a nonce that is bound to a checkout pays that one, and is refused by every other before it is claimed',
  },
  {
    name: 'price-by-floats',
    about: 'Prices are converted in floating point.',
    file: 'server/src/money.test.ts',
    test: 'a converted price is the smallest whole number of units that covers it',
  },
  {
    name: 'rounded-down',
    about: 'The store gets up to a unit less than it asked for.',
    file: 'server/src/money.test.ts',
    test: 'a converted price is the smallest whole number of units that covers it',
  },
  {
    name: 'any-amount-completes',
    about: 'Any money for a checkout completes it.',
    file: `${payments}/adversity/properties.test.ts`,
    test: 'a credit becomes exact only if it is accepted, or the whole amount and on time, and the earliest such',
  },
  {
    name: 'never-late',
    about: 'Money that came after the time counts as if it had come within it.',
    file: `${payments}/adversity/properties.test.ts`,
    test: 'a payment is late exactly if it came after the time and was not claimed within it',
  },
  {
    name: 'store-forgotten',
    about: 'A checkout is read by its id alone, whoever asks.',
    file: `${flows}/isolation.test.ts`,
    test: 'every keyed operation answers another store’s ids exactly as ids that do not exist, and changes nothing',
  },
  {
    name: 'literal-address-not-checked',
    about: 'A webhook address that is a number is not checked: only names are.',
    file: `${events}/ssrf.test.ts`,
    test: 'forms of address and a rebinding name server no canary is reached',
  },
  {
    name: 'name-looked-up-twice',
    about: 'The address that was checked is not the one that is connected to.',
    file: `${events}/ssrf.test.ts`,
    test: 'forms of address and a rebinding name server no canary is reached',
  },
  {
    name: 'body-signed-alone',
    about: 'The signature of a webhook says nothing about its id and time.',
    file: `${events}/sdk.test.ts`,
    test: 'our signer and verifier agree with the standard’s own library',
  },
  {
    name: 'old-delivery-accepted',
    about: 'A delivery that was recorded an hour ago is believed.',
    file: `${events}/sdk.test.ts`,
    test: 'what is missing, malformed, too old or too new is refused by name',
  },
  {
    name: 'revoked-key-accepted',
    about: 'A key that was revoked goes on working.',
    file: `${flows}/keys.test.ts`,
    test: 'a revoked key changes nothing more in any process, although its holder is remembered there',
  },
]
