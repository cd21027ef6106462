/**
 * Known bugs. Each is a patch in this folder, with the server test or the invariant of a fault run that must catch it.
 * A harness that finds nothing in correct code proves little; one that finds these bugs proves that it can find bugs.
 */
export type Planted = {
  /** The patch's file name without its extension. */
  readonly name: string
  /** The bug in one sentence. */
  readonly about: string
  /** Caught only when a test times out after minutes, so `--some` leaves it out. */
  readonly isSlow?: boolean
} & (
  | {
      readonly file: string /** The test that must fail, or a part of its name. */
      readonly test: string
    }
  | {
      readonly chaos: readonly string[] /** The invariant that must be broken. */
      readonly invariant: string
    }
)

const tests = 'server/test'
const payments = `${tests}/payments`
const webhooks = `${tests}/events/webhooks`
const refunds = `${tests}/refunds`

export const catalog: readonly Planted[] = [
  {
    name: 'unresolved-index-dropped',
    about: 'Two signatures for one checkout that arrive at the same time are both claimed.',
    file: `${payments}/adversity/races.test.ts`,
    test: 'of two payments for one checkout in one batch, exactly one is claimed',
  },
  {
    name: 'receipt-series-kept',
    about: 'After the same backup was restored twice, numbers of receipts are given again.',
    file: `${tests}/checkouts/buyer-receipts/issue.test.ts`,
    test: 'after a restore the numbers go on in a series of their own, also if the same backup is restored twice',
  },
  {
    name: 'movement-doubled',
    about: 'A payment that is told of twice is booked twice.',
    file: `${tests}/movements/histories.test.ts`,
    test: 'after any history each final payment and refund is one open line, decisions are lines, and sums agree',
  },
  {
    name: 'movement-left-out',
    about: 'Money without a checkout is not booked.',
    file: `${tests}/movements/histories.test.ts`,
    test: 'after any history each final payment and refund is one open line, decisions are lines, and sums agree',
  },
  {
    name: 'movement-reversal-not-booked',
    about: 'A payment that the chain took back for good stays in the books.',
    file: `${tests}/movements/histories.test.ts`,
    test: 'after any history each final payment and refund is one open line, decisions are lines, and sums agree',
  },
  {
    name: 'refund-booked-twice',
    about: 'A refund that is told of twice is booked twice.',
    file: `${tests}/movements/book.test.ts`,
    test: 'a final refund is booked once, as that part of the price, and a declared one moves no wallet',
  },
  {
    name: 'booked-at-goes-back',
    about: 'A line is booked in a month that was shown as complete.',
    file: `${tests}/movements/close.test.ts`,
    test: 'a clock that goes back, or another machine’s, books nothing in a month that was shown, and keeps the order',
  },
  {
    name: 'broadcast-before-commit',
    about: 'Signed bytes are sent before they are committed.',
    chaos: ['--plan', 'freeze', '--seconds', '10', '--buyers', '10', '--seed', '7'],
    invariant: 'I6',
  },
  {
    name: 'terms-while-restoring',
    about: 'After a restore, payers are asked to sign before the chain has been read.',
    file: `${payments}/crash/restore.test.ts`,
    test: 'a database restored to an earlier point loses no payment and charges nobody twice',
  },
  {
    name: 'terms-while-processing',
    about: 'A client that requests the checkout during a payment is asked to sign another one.',
    // Clients rarely ask at the wrong moment: on a busy machine there can be none in 15 seconds.
    isSlow: true,
    chaos: ['--plan', 'chain', '--seconds', '30', '--buyers', '20', '--seed', '7'],
    invariant: 'I9',
  },
  {
    name: 'idempotency-key-not-unique',
    about: 'Two requests with the same idempotency key can both take effect.',
    file: `${tests}/http/idempotency.test.ts`,
    test: 'concurrent requests with the same key through two processes create one checkout and get the same answer',
  },
  {
    name: 'answer-made-anew',
    about: 'A repeated create gets a new answer instead of the stored one.',
    file: `${tests}/http/idempotency.test.ts`,
    test: 'a repeated request gets the first answer byte for byte and creates nothing',
  },
  {
    name: 'reserved-amount-not-unique',
    about: 'Two checkouts can reserve the same amount at the same address.',
    file: `${payments}/transfers/reserve.test.ts`,
    test: 'when many checkouts want the same few amounts at once, each amount goes to exactly one',
  },
  {
    name: 'time-out-answered-402',
    about:
      'A payment whose outcome is not known in time is answered with 402, which asks for another signature.',
    file: `${tests}/checkouts/pay-availability.test.ts`,
    test: '13. outcome unknown after 25 s: 202 with Retry-After and the transaction; the same payment gets 200 once it is known',
  },
  {
    name: 'refusal-not-looked-at-again',
    about: 'A duplicate that is simulated after its twin was mined is refused instead of reported as paid.',
    file: `${payments}/adversity/twins.test.ts`,
    test: 'a duplicate that simulates after its twin was mined gets the twin’s answer',
  },
  {
    name: 'sweep-decides-expiry',
    about: 'An expired checkout can be paid until a sweep marks it as expired.',
    file: `${tests}/checkouts/pay-endpoint.test.ts`,
    test: 'EXPIRED, CANCELED, or OPEN past its expiry: 410 and no terms',
  },
  {
    name: 'used-nonce-taken-for-paid',
    about: 'A nonce that was spent on another recipient counts as the payment.',
    file: `${payments}/adversity/decoys.test.ts`,
    test: 'a nonce that its payer spends on another recipient never completes the checkout',
  },
  {
    name: 'zero-transfer-spends-nothing',
    about: 'A nonce that was spent on a transfer of zero is not recorded as spent.',
    file: `${payments}/adversity/decoys.test.ts`,
    test: 'a nonce that its payer spends on a transfer of nothing, to the store or elsewhere, is spent',
  },
  {
    name: 'pair-by-transaction',
    about:
      'Any Transfer after AuthorizationUsed in the same transaction counts as its payment, not only the next log.',
    file: 'server/src/chains/evm/eip3009-transfers.test.ts',
    test: 'a Transfer from another payer, after a gap, or in another transaction, block or token pays nothing',
  },
  {
    name: 'sent-payment-rejected',
    about: 'A payment can still be rejected after it was committed for sending.',
    file: `${payments}/adversity/races.test.ts`,
    test: 'an authorization is either rejected or broadcast, never both',
  },
  {
    name: 'claim-moves-first',
    about: 'A checkout moves to PROCESSING before it is known that the authorization is unclaimed.',
    file: `${payments}/adversity/races.test.ts`,
    test: 'an authorization claimed by another checkout changes no checkout',
  },
  {
    name: 'lease-without-fence',
    about: 'A lane that has lost its lease can still take a nonce.',
    file: `${payments}/settlers/settlers.test.ts`,
    test: 'a nonce is given only to the holder of the newest lease, and not once the settler drains',
  },
  {
    name: 'no-parent-check',
    about: 'The follower does not check that the chain still has the block that it read last.',
    file: `${tests}/chains/evm/follower.test.ts`,
    test: 'what takes blocks away or makes them final comes with the id of the chain it is from',
  },
  {
    name: 'orphans-stay-credited',
    about: 'Credits of orphaned blocks still count.',
    file: `${payments}/credits/finality.test.ts`,
    test: 'a payment that the chain takes back is sent again with the same bytes, and completes the checkout again',
  },
  {
    name: 'one-node-is-enough',
    about: 'One node is enough to declare a payment dead because its nonce is unused.',
    isSlow: true,
    file: `${payments}/crash/rpc-faults.test.ts`,
    test: 'a payment that one node calls unused is not given up for dead',
  },
  {
    name: 'safe-blocks-not-read-again',
    about: 'Blocks become safe without being read again from every provider.',
    file: `${payments}/credits/single-provider.test.ts`,
    test: 'a block that one provider alone reported does not become safe',
  },
  {
    name: 'wrapper-taken-off-twice',
    about:
      'A signature that is wrapped twice by ERC-6492 is unwrapped twice, although no wallet makes that form.',
    file: 'server/src/chains/evm/signature.test.ts',
    test: 'a wrapper is taken off once: what is wrapped twice, or ends with the magic bytes inside, is refused',
  },
  {
    name: 'wrapper-stored',
    about: 'A signature that came wrapped by ERC-6492 is stored and sent with its wrapper.',
    file: `${payments}/evm/wrapped.test.ts`,
    test: 'a deployed wallet that wraps its signature pays, and only the signature inside is stored and sent',
  },
  {
    name: 'signature-kept-as-sent',
    about: 'Signatures are not converted to the form that the token accepts.',
    file: `${payments}/evm/wallets.test.ts`,
    test: 'a signature of 64 bytes, with v of 0 or 1, with a high s or in upper case pays like any other',
  },
  {
    name: 'bound-nonce-ignored',
    about: 'A stolen signature pays the thief’s checkout although its nonce is bound to the victim’s.',
    file: `${payments}/evm/wallets.test.ts`,
    test: 'a nonce bound to a checkout pays that checkout, and every other refuses it before claiming it',
  },
  {
    name: 'price-by-floats',
    about: 'Prices are converted with floating-point arithmetic.',
    file: 'server/src/money.test.ts',
    test: 'a converted price is the smallest whole number of units that covers it',
  },
  {
    name: 'rounded-down',
    about: 'The store receives up to one unit less than its price.',
    file: 'server/src/money.test.ts',
    test: 'a converted price is the smallest whole number of units that covers it',
  },
  {
    name: 'any-amount-completes',
    about: 'Any amount completes a checkout.',
    file: `${payments}/adversity/properties.test.ts`,
    test: 'a credit becomes exact only if it is the earliest that is accepted, or on time and for the whole amount',
  },
  {
    name: 'never-late',
    about: 'A payment that arrives after the checkout has expired counts as on time.',
    file: `${payments}/adversity/properties.test.ts`,
    test: 'a payment is late if and only if it came after the expiry and was not claimed before it',
  },
  {
    name: 'store-forgotten',
    about: 'A checkout is read by its id alone, without checking which store owns it.',
    file: `${tests}/stores/isolation.test.ts`,
    test: 'every keyed operation answers another store’s ids exactly like ids that do not exist, and changes nothing',
  },
  {
    name: 'literal-address-not-checked',
    about: 'Webhook URLs with an IP address are not checked, only those with a host name.',
    file: `${webhooks}/ssrf.test.ts`,
    test: 'forms of address and a rebinding name server reaches a canary',
  },
  {
    name: 'name-looked-up-twice',
    about: 'The name is resolved again to connect, so the address that was checked may not be the one used.',
    file: `${webhooks}/ssrf.test.ts`,
    test: 'forms of address and a rebinding name server reaches a canary',
  },
  {
    name: 'body-signed-alone',
    about: 'A webhook’s signature does not cover its id and timestamp.',
    file: `${webhooks}/signature.test.ts`,
    test: 'our signer agrees with the standard’s own library',
  },
  {
    name: 'old-delivery-accepted',
    about: 'A delivery that was signed an hour ago is accepted.',
    file: `${webhooks}/signature.test.ts`,
    test: 'a missing or malformed header, and a delivery that is too old or too new, are each rejected with their own code',
  },
  {
    name: 'revoked-key-accepted',
    about: 'A revoked key still works.',
    file: `${tests}/stores/keys.test.ts`,
    test: 'a revoked key can change nothing in any process, even where it is still cached',
  },
  {
    name: 'anyone-decides',
    about:
      'A store that shares an unproven wallet with others decides about payments that match no checkout.',
    file: `${payments}/credits/owners.test.ts`,
    test: 'stores that share a wallet all see and hear of its money, and none decides until one has proven the wallet',
  },
  {
    name: 'challenge-used-twice',
    about: 'A wallet’s signature of a challenge is accepted more than once.',
    file: `${tests}/stores/prove.test.ts`,
    test: 'a wallet is proven by its signature of the challenge, once, and the log shows it',
  },
  {
    name: 'disabled-endpoint-not-warned',
    about: 'A disabled endpoint does not receive the event of a new wallet.',
    file: `${payments}/adversity/attacks/silenced-webhook.test.ts`,
    test: 'an endpoint that was disabled for a moment still receives the event of a wallet registered in that time',
  },
  {
    name: 'one-provider-turns-back',
    about: 'One provider alone can replace blocks that are safe.',
    file: `${payments}/adversity/attacks/foreign-history.test.ts`,
    test: 'a finalized payment is not reversed by one node while the other is silent',
  },
  {
    name: 'peek-instead-of-search',
    about: 'While a transaction is not mined, nothing else is looked for.',
    file: 'server/src/chains/evm/cadence.test.ts',
    test: 'while a transaction is not mined, the chain is searched as soon as a peek finds it, and every few seconds in any case',
  },
  {
    name: 'told-alone-counts',
    about: 'Payments that only one provider has reported complete checkouts without a limit.',
    file: `${payments}/credits/single-provider.test.ts`,
    test: 'payments claimed beforehand wait for the second provider once the sum is used up, and complete when it is back',
  },
  {
    name: 'told-alone-becomes-safe',
    about: 'A block that only one provider has reported becomes safe.',
    file: `${payments}/credits/single-provider.test.ts`,
    test: 'a block that one provider alone reported does not become safe',
  },
  {
    name: 'forged-logs-stay',
    about: 'A payment that a provider made up stays after the other providers are read.',
    file: `${payments}/adversity/attacks/forged-log.test.ts`,
    test: 'a small payment that one node made up while the other was silent is withdrawn when the other is back',
  },
  {
    name: 'signature-shown-early',
    about: 'Nodes see a signature before it is committed.',
    file: `${payments}/adversity/attacks/early-signature.test.ts`,
    test: 'no node sees a payer’s signature before it is committed',
  },
  {
    name: 'two-lanes-one-balance',
    about: 'Two lanes each send a payment that one balance covers only once.',
    file: `${payments}/adversity/two-lanes.test.ts`,
    test: 'of two payments that one balance covers only once, two lanes do not each send one',
  },
  {
    name: 'fill-without-cap',
    about: 'The fee of a transaction that frees a nonce rises without end.',
    file: 'server/src/payments/evm/tend.test.ts',
    test: 'replacements rise by an eighth, each under its own absolute cap',
  },
  {
    name: 'contract-simulated-with-more-gas',
    about: 'A contract wallet is simulated with more gas than it is sent with.',
    file: `${payments}/adversity/attacks/gas-aware-wallet.test.ts`,
    test: 'a signature that is valid only with more gas than the send has costs the settler nothing',
  },
  {
    name: 'spike-not-refused',
    about: 'Payments are claimed while the base fee is above the cap.',
    file: `${payments}/adversity/attacks/base-fee-spike.test.ts`,
    test: 'no payment is claimed while the base fee is above the fee cap',
  },
  {
    name: 'place-kept',
    about: 'A payment keeps its place after it is answered, so a process takes ever fewer payments.',
    file: `${tests}/checkouts/pay-availability.test.ts`,
    test: '11. more payments than a process takes: 503 with Retry-After and nothing claimed; a repeat needs no place',
  },
  {
    name: 'final-too-early',
    about: 'A payment counts as final before its block is.',
    file: `${payments}/credits/finality.test.ts`,
    test: 'above an amount for which the store asks for safe or finalized: 202 first, 200 once it is; smaller amounts at once',
  },
  {
    name: 'refund-total-not-raised',
    about: 'A second refund does not reduce the amount of the payment that is left to refund.',
    file: `${refunds}/totals.test.ts`,
    test: 'whatever is asked for and canceled at once, the total is the sum of what counts and within the payment',
  },
  {
    name: 'refund-canceled-too-early',
    about: 'A canceled refund frees its amount although its prepared terms can still be signed and used.',
    file: `${refunds}/handed-out.test.ts`,
    test: 'a refund that is canceled after it was handed out counts until that is dead',
  },
  {
    name: 'refund-unseen-signature-ignored',
    about: 'A refund whose signature was never presented stops counting when it is canceled.',
    file: `${refunds}/handed-out.test.ts`,
    test: 'a refund that is canceled after it was handed out counts until that is dead',
  },
  {
    name: 'refund-nonce-shared',
    about: 'Two refunds are prepared with one nonce.',
    file: `${refunds}/handed-out.test.ts`,
    test: 'a nonce that was handed out belongs to one refund until it has expired and that refund has ended',
  },
  {
    name: 'refund-window-forgotten',
    about:
      'A refund is prepared with a later window, but the earlier one is recorded, so it is given up too early.',
    file: `${refunds}/handed-out.test.ts`,
    test: 'a window is never recorded as shorter than what was handed out, and a signature is taken for the latest alone',
  },
  {
    name: 'refund-signature-of-any-window',
    about: 'A signature for another refund or window than the prepared one is accepted.',
    file: `${refunds}/handed-out.test.ts`,
    test: 'a window is never recorded as shorter than what was handed out, and a signature is taken for the latest alone',
  },
  {
    name: 'refund-completed-by-any-transfer',
    about: 'Any transfer with its nonce completes a refund, whoever received it.',
    file: `${refunds}/handed-out.test.ts`,
    test: 'only a transfer of its amount to its recipient completes a refund',
  },
  {
    name: 'refunded-payment-accepted',
    about: 'A payment that is being refunded can still be accepted for a checkout.',
    file: `${refunds}/handed-out.test.ts`,
    test: 'a payment that a refund counts against pays no checkout any more',
  },
  {
    name: 'refund-forgotten-by-restore',
    about: 'A refund that is on the chain but not in a restored database is not counted.',
    file: `${refunds}/totals.test.ts`,
    test: 'refunds that a restore has forgotten count, and a key that asks for one of them again gets it',
  },
  {
    name: 'refund-with-other-terms-forgotten',
    about: 'After a restore, a refund is not counted if its nonce is known with another amount or recipient.',
    file: `${refunds}/restore.test.ts`,
    test: 'a forgotten refund with a nonce that the restored database knows with other terms counts all the same',
  },
  {
    name: 'refund-key-pays-again',
    about: 'A key whose refund was paid before a restore gets a second refund.',
    file: `${refunds}/totals.test.ts`,
    test: 'refunds that a restore has forgotten count, and a key that asks for one of them again gets it',
  },
  {
    name: 'one-counter-stops-all',
    about: 'One store whose events cannot be numbered stops the numbering for all stores.',
    file: `${tests}/events/assign-sequence.test.ts`,
    test: 'a wrong counter and a poisoned event delay only their own stores',
  },
  {
    name: 'stopped-lane-keeps-payments',
    about: 'If someone else uses a settler’s key, the payments that it had in flight are never sent.',
    file: `${payments}/settlers/foreign-nonce.test.ts`,
    test: 'another lane settles what it had in flight, each once',
  },
  {
    name: 'another-stores-wallet',
    about: 'A checkout is paid into another store’s wallet.',
    chaos: ['--plan', 'kills', '--seconds', '15', '--buyers', '15', '--seed', '7'],
    invariant: 'I17',
  },
  {
    name: 'half-the-price',
    about: 'A checkout asks for half of what its store asked for.',
    chaos: ['--plan', 'kills', '--seconds', '15', '--buyers', '15', '--seed', '7'],
    invariant: 'I17',
  },
  {
    name: 'event-says-double',
    about: 'Events name twice the amount that was paid.',
    chaos: ['--plan', 'kills', '--seconds', '15', '--buyers', '15', '--seed', '7'],
    invariant: 'I13',
  },
  {
    name: 'refund-events-not-delivered',
    about: 'Events about refunds reach no endpoint.',
    chaos: ['--plan', 'kills', '--seconds', '15', '--buyers', '15', '--seed', '7'],
    invariant: 'I10',
  },
  {
    name: 'final-at-once',
    about: 'The newest block is taken for a final one.',
    chaos: ['--plan', 'kills', '--seconds', '15', '--buyers', '15', '--seed', '7'],
    invariant: 'I1',
  },
  {
    name: 'copied-authorization-adopted',
    about: 'A signature that was copied from the chain pays the checkout for which it is presented.',
    file: `${payments}/evm/adopt.test.ts`,
    test: 'money that landed before it was presented pays nothing, and the store is told',
  },
  {
    name: 'refund-key-ignored',
    about: 'One idempotency key makes two refunds.',
    file: `${refunds}/create.test.ts`,
    test: 'the same Idempotency-Key returns the same refund, and refuses another body',
  },
  {
    name: 'two-of-four-decide',
    about: 'Two providers of four decide against the other two.',
    file: 'server/src/chains/agree.test.ts',
    test: 'a fact is believed if enough report it and no equally large group reports something else',
  },
  {
    name: 'cancel-forgotten',
    about: 'A canceled checkout opens again when the chain takes back a payment that its store had accepted.',
    file: `${tests}/checkouts/canceled-stays.test.ts`,
    test: 'a canceled checkout whose accepted payment the chain takes back is canceled again',
  },
  {
    name: 'security-event-waits-in-line',
    about: 'At an ordered endpoint, a failing delivery holds back the event of a wallet change.',
    file: `${webhooks}/ordered-security.test.ts`,
    test: 'at an ordered endpoint, a security event overtakes a delivery that fails',
  },
  {
    name: 'key-checked-at-the-door-only',
    about: 'A change in progress still commits after its key is revoked.',
    file: `${tests}/stores/revoked-keys.test.ts`,
    test: 'a change that is under way while its key is revoked is not made, whatever the operation',
  },
  {
    name: 'create-by-an-ended-key',
    about: 'A checkout is created although its key ended meanwhile.',
    file: `${tests}/stores/revoked-keys.test.ts`,
    test: 'a create is not made if its key expires while it waits',
  },
  {
    name: 'delegated-wallet-is-a-contract',
    about:
      'A wallet that has delegated itself gets a contract wallet’s week, which a restore does not wait for.',
    file: `${refunds}/delegated-wallet.test.ts`,
    test: 'a wallet that has delegated itself gets the window of an ordinary one',
  },
  {
    name: 'limit-freed-by-withdrawn',
    about:
      'A provider alone can reset the limit on payments that it alone reports, by replacing its own block.',
    file: `${payments}/adversity/attacks/replaced-alone.test.ts`,
    test: 'alone completes no more than it may, however often it replaces its block',
  },
  {
    name: 'signed-claims-counted-one-by-one',
    about: 'A contract wallet that has signed many payments blocks the network for all payers.',
    file: `${payments}/settlers/waiting.test.ts`,
    test: 'so it closes the network to nobody',
  },
  {
    name: 'one-provider-knows-the-sender',
    about: 'One provider alone decides who sent a transaction.',
    file: `${payments}/adversity/attacks/false-sender.test.ts`,
    test: 'cannot have a reorganised transfer given up',
  },
  {
    name: 'svm-guard-of-any-kind',
    about:
      'Any instruction of the program that provides wallets’ guards counts as a guard, even one that we would pay for.',
    file: `${payments}/svm/guards.test.ts`,
    test: 'a guard that writes memory at the fee payer’s expense',
  },
  {
    name: 'svm-forked-payment-stays-credited',
    about: 'On Solana, a payment that a fork took back still counts.',
    file: `${payments}/svm/faults.test.ts`,
    test: 'a transaction taken back by a fork is sent again: the store is notified of both and is paid once',
  },
  {
    name: 'svm-sent-before-commit',
    about: 'On Solana, signed bytes are sent before they are committed.',
    chaos: ['--plan', 'solana', '--short', '--seed', '3', '--providers', '3'],
    invariant: 'I6',
  },
  {
    name: 'svm-one-provider-lands-it',
    about: 'On Solana, one provider alone decides that a transaction has landed.',
    file: `${payments}/svm/liars.test.ts`,
    test: 'forges completes nothing, and the payer may sign again when the lie ends',
  },
  {
    name: 'svm-life-of-the-lowest',
    about: 'On Solana, the life of a payment is taken from the provider that names the shortest.',
    file: `${payments}/svm/liars.test.ts`,
    test: 'buries no payment that can still land',
  },
  {
    name: 'svm-one-provider-buries',
    about: 'On Solana, one provider alone decides that a payment is too old to land.',
    file: `${payments}/svm/liars.test.ts`,
    test: 'says only after the claim that its blockhash is too old, a payment is not given up',
  },
  {
    name: 'svm-list-is-believed',
    about: 'On Solana, one provider alone decides that a transfer names a reference.',
    file: `${payments}/svm/liars-elsewhere.test.ts`,
    test: 'a transfer of somebody else that one of two lists for a reference pays nothing',
  },
  {
    name: 'deleted-payment-counts-again',
    about:
      'A payment whose checkout was deleted by retention is recorded again when its block is read again.',
    file: `${payments}/credits/kept.test.ts`,
    test: 'neither by one provider alone nor by all, in another block',
  },
]
