import type { CreateApiKey, KeyPreset, Scope } from '@farthing/sdk'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../../../context.ts'
import { Refusal } from '../../../members/refusal.ts'
import { mayMakeKeys } from '../../../members/rights.ts'
import { createKey, revokeKey } from '../../../stores/api-keys.ts'
import { presetNames, scopes, subjects } from '../../../stores/scopes.ts'
import type { Key } from '../../../stores/store.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { renderApiLine, sendSecret } from '../parts.ts'
import { inWords, openScreen, type Screen } from '../screen.ts'
import { at, backOf, renderSubhead } from './parts.ts'

const path = '/stores/:storeId/developers/keys'
const write = { config: { right: 'keys:write' } } as const
const choices = ['create', 'read', 'full', 'scopes'] as const

/** Making and revoking keys, each by a touch. */
export function mountKeys(scope: FastifyInstance, ctx: Context): void {
  scope.get(`${path}/new`, write, (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    if (!mayMake(screen)) throw new Refusal('role')
    const texts = screen.texts.developers
    return screen.send({
      screen: 'developers',
      title: texts.newKey,
      main: html`${renderSubhead(texts.newKey, backOf(screen))}
<section class="pane">${renderForm(screen)}</section>
${renderApiLine(screen, {
  method: 'POST',
  path: '/keys',
  body: { label: texts.labelExample, preset: 'create' },
})}`,
    })
  })

  scope.post(path, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { storeId, store, field } = screen
    const texts = screen.texts.developers
    const names = ['label', 'preset', 'addresses', ...subjects]
    const values = Object.fromEntries(names.map((name) => [name, field(name)]))
    const touch = await screen.touch()
    const { text } = await inWords(texts.problems, () =>
      screen.actWith(touch, 'key.create', values, async (acting) => {
        if (!mayMakeKeys(acting.role, store.mode)) throw new Refusal('role')
        const maker = { actor: acting.actor, limit: null }
        return await createKey(acting.ctx, storeId, maker, readKey(screen, values), ctx.now())
      }),
    )
    const { keyMade: title, keyMadeAbout: about, copyKey: copy } = texts
    return sendSecret(screen, { title, about, copy, secret: text, back: backOf(screen) })
  })

  scope.post(`${path}/revoke`, write, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const keyId = screen.field('keyId')
    const touch = await screen.touch()
    await inWords(screen.texts.developers.problems, () =>
      screen.actWith(touch, 'key.revoke', { keyId }, ({ ctx: mine, actor }) =>
        revokeKey(mine, screen.storeId, { actor, limit: null }, keyId, ctx.now()),
      ),
    )
    return screen.go('/developers')
  })
}

export function mayMake({ store: { role, mode } }: Screen): boolean {
  return mayMakeKeys(role, mode)
}

function readKey(
  { texts: { developers: texts } }: Screen,
  values: Readonly<Record<string, string>>,
): CreateApiKey {
  const { label = '', preset = '', addresses = '' } = values
  const listed = addresses.split(/[\s,]+/).filter((each) => each !== '')
  const input = { ...(label !== '' && { label }), ...(listed.length > 0 && { addresses: listed }) }
  if (presetNames.includes(preset as KeyPreset)) return { ...input, preset: preset as KeyPreset }
  if (preset !== 'scopes') throw new Refusal('invalid')
  const chosen = subjects
    .map((subject) => `${subject}:${values[subject]}`)
    .filter((each): each is Scope => scopes.includes(each as Scope))
  if (chosen.length === 0) throw new Refusal('invalid', { detail: texts.noScopes })
  return { ...input, scopes: chosen }
}

function renderForm({ base, storeFields: form, texts: { developers: texts } }: Screen): Html {
  const levels = (['none', 'read', 'write'] as const).map(
    (level) => html`<option value="${level}">${texts.levels[level]}</option>`,
  )
  return html`<form method="post" action="${base}/developers/keys" data-confirm="key.create" class="fields">${form}
<label>${texts.label}<input name="label" maxlength="100" placeholder="${texts.labelExample}" autocomplete="off"></label>
<fieldset><legend>${texts.may}</legend>${choices.map(
    (choice, i) =>
      html`<label class="choice"><input type="radio" name="preset" value="${choice}"${i === 0 && html` checked`}><b>${
        texts.presets[choice].name
      }</b><small>${texts.presets[choice].about}</small></label>`,
  )}</fieldset>
<fieldset class="scopes"><legend>${texts.presets.scopes.name}</legend>${subjects.map(
    (subject) =>
      html`<label><span>${texts.subjects[subject]}</span><select name="${subject}">${levels}</select></label>`,
  )}</fieldset>
<label>${texts.addresses}<input name="addresses" maxlength="1000" autocomplete="off" spellcheck="false"><small>${
    texts.addressesAbout
  }</small></label>
<div class="buttons"><button>${texts.makeKey}</button><a class="button quiet" href="${base}/developers">${
    texts.cancel
  }</a></div>
</form>`
}

/** The store's keys, with a way to revoke each. */
export function renderKeys(screen: Screen, keys: readonly Key[]): Html {
  const texts = screen.texts.developers
  if (keys.length === 0) return html`<div class="pane"><p class="empty">${texts.noKeys}</p></div>`
  return html`<div class="table" role="region" aria-label="${texts.keys}" tabindex="0"><table class="cards">
<thead><tr><th scope="col">${texts.key}</th><th scope="col">${texts.may}</th><th scope="col">${texts.lastUsed}</th>
<th scope="col"><span class="unseen">${texts.action}</span></th></tr></thead>
<tbody>${keys.map((key) => renderKey(screen, key))}</tbody></table></div>`
}

function renderKey(screen: Screen, key: Key): Html {
  const { base, storeFields: form, store, ctx } = screen
  const texts = screen.texts.developers
  const { id, label, addresses, lastUsedAt, expiresAt, revokedAt } = key
  const isOver = revokedAt !== null || (expiresAt !== null && expiresAt <= ctx.now())
  const state = revokedAt
    ? fill(texts.revoked, { time: at(screen, revokedAt) })
    : expiresAt && fill(isOver ? texts.expired : texts.expires, { time: at(screen, expiresAt) })
  const name = label ?? texts.unnamed
  return html`<tr><td class="c1"><b>${name}</b> <code class="soft" title="${id}">sk_${store.mode}_${id.slice(
    0,
    8,
  )}…</code>${state && html` <span class="chip${isOver && html` bad`}">${state}</span>`}</td>
<td class="c3 wraps">${renderScopes(screen, key)}${
    addresses.length > 0 &&
    html` <span class="soft">${fill(texts.from, { addresses: addresses.join(', ') })}</span>`
  }</td>
<td class="c4 soft">${lastUsedAt ? at(screen, lastUsedAt) : texts.neverUsed}</td>
<td class="c2 num">${
    screen.may('keys:write') &&
    !isOver &&
    html`<form method="post" action="${base}/developers/keys/revoke" data-confirm="key.revoke">${form}
<input type="hidden" name="keyId" value="${id}">
<button class="quiet tiny">${texts.revoke}<span class="unseen"> ${name}</span></button></form>`
  }</td></tr>`
}

/** By the name of a preset where it is one. Whoever may change something may read it, so reading is left out there. */
function renderScopes({ texts: { developers: texts } }: Screen, { scopes: granted }: Key): Html {
  if (granted === null) return html`<span class="chip">${texts.everything}</span>`
  const shown = granted.filter(
    (each) => !granted.includes(each.replace(':read', ':write') as Scope) || each.endsWith(':write'),
  )
  const reads = scopes.filter((each) => each.endsWith(':read'))
  if (shown.length === reads.length && shown.every((each) => reads.includes(each)))
    return html`<span class="chip">${texts.presets.read.name}</span>`
  if (shown.length === 1 && shown[0] === 'checkouts:write')
    return html`<span class="chip">${texts.presets.create.name}</span>`
  return html`${shown.map((each) => html`<span class="chip">${each}</span> `)}`
}
