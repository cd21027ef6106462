import { Refusal } from '../../../members/refusal.ts'
import { listChanges, type WalletChange } from '../../../stores/change.ts'
import { listCurrent } from '../../../stores/rows.ts'
import type { Wallet } from '../../../stores/store.ts'
import { type Html, html } from '../../page/html.ts'
import { showFours } from '../formats.ts'
import { renderCheck, renderFact, renderHead, renderHidden } from '../parts.ts'
import type { Screen, StoreRoutes } from '../screen.ts'
import { renderUp } from './enter.ts'
import { nameFamily, renderBig, renderFollowing } from './parts.ts'

/** Before an owner goes back to an earlier wallet: where new checkouts are paid then, and what else follows. */
export function mountUndoing({ get }: StoreRoutes): void {
  get('/wallets/undo/:changeId', 'wallets:write', async (screen) => {
    const { ctx, storeId, part, texts } = screen
    const [changes, current] = await Promise.all([listChanges(ctx.db, storeId), listCurrent(ctx.db, storeId)])
    const change = changes.find(({ id }) => id === part('changeId'))
    if (!change) throw new Refusal('not_found')
    if (!change.isUndoable) throw new Refusal('undo_over')
    const now = current.find(({ family }) => family === change.family) ?? null
    return screen.send({
      screen: 'wallets',
      title: change.previous ? texts.wallets.undo.title : texts.wallets.stop.title,
      main: renderUndo(screen, change, now),
    })
  })
}

function renderUndo(screen: Screen, { id, family, previous }: WalletChange, now: Wallet | null): Html {
  const { base, formFields } = screen
  const { undo: texts, stop, enter, cancelOther, cancelIt } = screen.texts.wallets
  const network = nameFamily(screen, family)
  const { follows } = texts
  const steps = [previous ? follows.back : stop.follows.none, follows.later, follows.final]
  const then = previous
    ? renderBig(enter.paidThen, previous.address)
    : html`<div class="big"><p class="label">${enter.paidThen}</p><p>${enter.nobody}</p></div>`
  const title = previous ? texts.title : stop.title
  return html`${renderHead(title, { above: renderUp(screen), about: network })}
<div class="split"><section class="pane stack">
<dl class="list tall">${renderFact(enter.paidNow, now ? showFours(now.address) : enter.nobody)}</dl>${then}
<form class="stack" method="post" action="${base}/wallets/undo" data-confirm="wallet.undo">${formFields}
${renderHidden('changeId', id)}${renderHidden('address', previous?.address ?? '')}
${renderCheck('cancelsOpen', previous ? cancelOther : cancelIt, true)}
<div class="buttons"><button>${previous ? texts.confirm : stop.confirm}</button>
<a class="button quiet" href="${base}/wallets">${enter.back}</a></div></form></section>
<section class="facts">${renderFollowing(enter.followsTitle, steps, { network })}</section></div>`
}
