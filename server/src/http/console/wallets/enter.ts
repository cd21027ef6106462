import type { CustodialType } from '@farthing/sdk'
import type { FastifyReply } from 'fastify'
import { type AddressFault, addressFormOf, parseWalletAddress } from '../../../chains/families.ts'
import type { Context } from '../../../context.ts'
import { Refusal } from '../../../members/refusal.ts'
import { type Family, families } from '../../../networks.ts'
import { listCurrent, listWallets } from '../../../stores/rows.ts'
import { networksFor, type Wallet, walletSegment } from '../../../stores/store.ts'
import { useWallet } from '../../../stores/wallet-touches.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showFours } from '../formats.ts'
import { renderApiLine, renderChoice, renderFact, renderField, renderHead, renderHidden } from '../parts.ts'
import { inWords, type Screen, type StoreRoutes } from '../screen.ts'
import { familiesOf, nameFamily, renderAsking, renderBig, renderFollowing } from './parts.ts'

const path = '/wallets'
const write = 'wallets:write'
/** Longer than any address. A longer text is no address either way. */
const addressMax = 100
/** More than stores have in use. Older ones are entered anew. */
const knownMax = 100

const kinds: readonly CustodialType[] = ['NON_CUSTODIAL', 'CUSTODIAL']

type Fault = AddressFault | 'secret' | 'network'

/** Where an owner names the wallet that is paid, and confirms it on a screen that shows nothing else. */
export function mountEntering({ get, post }: StoreRoutes, ctx: Context): void {
  get(`${path}/new`, write, (screen) => sendForm(screen, '', kinds[0], null))

  // The answer is the screen for the touch. It has no address of its own: a link could lead there with another wallet.
  post(`${path}/new`, write, async (screen) => {
    const entered = screen.field('address').trim()
    const kind = kinds.find((each) => each === screen.field('custodialType')) ?? kinds[0]
    const read = readAddress(screen, entered)
    if ('fault' in read) return sendForm(screen, entered, kind, read.fault)
    return await sendConfirmation(screen, read, kind)
  })

  post(`${path}/use`, write, async (screen) => {
    const { ctx: mine, storeId, touch, field, texts } = screen
    const family = familiesOf(screen).find((each) => each === field('family'))
    const custodialType = kinds.find((each) => each === field('custodialType'))
    if (!family || !custodialType) throw new Refusal('invalid')
    const wanted = { family, custodialType, walletAddress: field('address'), paidNow: field('paidNow') }
    const given = await touch()
    const { id } = await inWords(texts.wallets.problems, () =>
      useWallet(mine, storeId, given, wanted, ctx.now()),
    )
    return screen.go(`${path}/${id}`)
  })
}

type Read = { readonly family: Family; readonly address: string } | { readonly fault: Fault }

/** The families differ so much that an address fits one of them at most. */
function readAddress(screen: Screen, text: string): Read {
  if (looksSecret(text)) return { fault: 'secret' }
  let fault: Fault = 'form'
  for (const family of families) {
    const parsed = parseWalletAddress(family, text)
    if ('address' in parsed)
      return familiesOf(screen).includes(family) ? { family, address: parsed.address } : { fault: 'network' }
    if (parsed.fault !== 'form') fault = parsed.fault
  }
  return { fault }
}

/** A private key of either family, or a recovery phrase. It is not shown again. */
function looksSecret(text: string): boolean {
  return (
    /^(0x)?[0-9a-f]{64}$/i.test(text) ||
    /^[1-9A-HJ-NP-Za-km-z]{80,}$/.test(text) ||
    text.startsWith('[') ||
    text.split(/\s+/).length > 5
  )
}

function sendForm(
  screen: Screen,
  entered: string,
  kind: CustodialType | undefined,
  fault: Fault | null,
): Promise<FastifyReply> {
  const texts = screen.texts.wallets.enter
  const { base, formFields } = screen
  const offered = familiesOf(screen)
  const names = offered.map((family) => nameFamily(screen, family)).join(', ')
  const address = {
    ...{ value: fault === 'secret' ? '' : entered, required: true, maxlength: addressMax },
    ...{ autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', dir: 'ltr', class: 'address' },
    ...(fault && { 'aria-invalid': 'true', 'aria-describedby': 'fault' }),
  }
  const hint = offered.map((family) => {
    const { prefix, length } = addressFormOf(family)
    const text = prefix === '' ? texts.forms.plain : texts.forms.prefixed
    return html`${fill(text, { networks: nameFamily(screen, family), prefix, length })} `
  })
  const values = { into: 'address', label: texts.take, unnamed: texts.unnamed, ...texts.troubles }
  const line = {
    method: 'POST',
    path: `/stores/${screen.storeId}/wallets/${walletSegment(networksFor(screen.ctx, screen.store.mode))}`,
    body: { walletAddress: '<your address>', custodialType: 'NON_CUSTODIAL' },
  }
  return screen.send({
    screen: 'wallets',
    title: texts.title,
    ...(fault && { status: 422 }),
    main: html`${renderHead(texts.title, { above: renderUp(screen), about: texts.about })}
<section class="pane stack">${fault && html`<p class="note" id="fault" role="alert">${texts.faults[fault]}</p>`}
<form class="fields" method="post" action="${base}${path}/new">${formFields}
${renderField(texts.address, 'address', address, html`${hint}`)}
${renderAsking('address', offered, values, { asking: texts.asking, none: texts.none })}
<fieldset><legend>${texts.kind}</legend>${kinds.map((each) => {
      const { title, text } = texts.kinds[each]
      return renderChoice('custodialType', each, each === kind, {
        title,
        text: text.replace('{networks}', names),
      })
    })}</fieldset>
<div class="buttons"><button>${texts.next}</button></div></form></section>
${renderApiLine(screen, line)}`,
  })
}

/** The line above a screen's heading that leads back to all wallets. */
export function renderUp({ base, texts }: Screen): Html {
  return html`<p class="soft"><a href="${base}${path}">${texts.frame.screens.wallets}</a></p>`
}

/** The screen that the owner confirms: both addresses in groups, and what follows. */
async function sendConfirmation(
  screen: Screen,
  { family, address }: { readonly family: Family; readonly address: string },
  asked: CustodialType | undefined,
): Promise<FastifyReply> {
  const { ctx, storeId } = screen
  const [current, known] = await Promise.all([
    listCurrent(ctx.db, storeId),
    listWallets(ctx.db, storeId, { before: null, limit: knownMax }),
  ])
  const now = current.find((each) => each.family === family) ?? null
  // What is already in use needs no touch.
  if (now?.address === address) return screen.go(`${path}/${now.id}`)
  const earlier = known.find((each) => each.family === family && each.address === address)
  const custodialType = earlier?.custodialType ?? asked ?? 'NON_CUSTODIAL'
  const texts = screen.texts.wallets.enter
  const title = now ? texts.change : texts.first
  return screen.send({
    screen: 'wallets',
    title,
    main: html`${renderHead(title, { above: renderUp(screen), about: nameFamily(screen, family) })}
<div class="split"><section class="pane stack">
${renderConfirm(screen, { family, address, custodialType, now })}</section>
<section class="facts">${renderWhatFollows(screen, { family, custodialType, now })}</section></div>`,
  })
}

type Asked = {
  readonly family: Family
  readonly custodialType: CustodialType
  /** The wallet in use. */
  readonly now: Wallet | null
}

function renderConfirm(
  screen: Screen,
  { family, address, custodialType, now }: Asked & { readonly address: string },
): Html {
  const { base, formFields } = screen
  const texts = screen.texts.wallets.enter
  const paid = renderFact(texts.paidNow, now ? showFours(now.address) : texts.nobody)
  const leave = html`<a class="button quiet" href="${base}${path}">${now ? texts.keep : texts.back}</a>`
  return html`<dl class="list tall">${paid}</dl>${renderBig(texts.paidThen, address)}
<p class="words">${texts.compare}</p>
<form class="buttons" method="post" action="${base}${path}/use" data-confirm="wallet.use">${formFields}
${renderHidden('family', family)}${renderHidden('address', address)}
${renderHidden('custodialType', custodialType)}${renderHidden('paidNow', now?.address ?? '')}
<button>${texts.confirm}</button>${leave}</form>
<p class="soft">${texts.bound}</p>`
}

function renderWhatFollows(screen: Screen, { family, custodialType, now }: Asked): Html {
  const { follows, followsTitle } = screen.texts.wallets.enter
  const network = nameFamily(screen, family)
  const isOwn = custodialType === 'NON_CUSTODIAL'
  const steps = [
    screen.ctx.directory ? follows.afterProof : follows.atOnce,
    ...(now ? [follows.open] : []),
    follows.undo,
    ...(now ? [follows.refunds] : []),
    isOwn ? follows.proof : follows.custodial,
  ]
  return renderFollowing(followsTitle, steps, { network })
}

/** A form that leads to the same confirmation, for a wallet that the store had before. */
export function renderUseAgain(screen: Screen, { address, custodialType }: Wallet): Html {
  const { base, formFields, texts } = screen
  return html`<form method="post" action="${base}${path}/new">${formFields}
${renderHidden('address', address)}${renderHidden('custodialType', custodialType)}
<button class="quiet">${texts.wallets.useAgain}</button></form>`
}
