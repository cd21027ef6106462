import { type Invitation, roles, type StoreMember } from '../../../members/member.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { isNothing } from '../fields.ts'
import { showMinute } from '../formats.ts'
import { renderChip, renderChooser, renderField, renderHead, renderHidden, renderSelect } from '../parts.ts'
import type { Screen } from '../screen.ts'

export type Team = {
  readonly members: readonly StoreMember[]
  /** Unused invitations; owners see them. */
  readonly invitations: readonly Invitation[]
  /** The most that each manager may refund within 24 hours. */
  readonly limit: string
  /** Whether this deployment mails invitations. */
  readonly isMailed: boolean
}

export function renderTeam(screen: Screen, { members, invitations, limit, isMailed }: Team): Html {
  const texts = screen.texts.team
  const open = html`<h2>${texts.open}</h2>
<ul class="things">${invitations.map((each) => renderInvitation(screen, each))}</ul>`
  return html`${renderHead(fill(texts.title, { store: screen.store.storeName }))}
<div class="split"><section class="pane">
<ul class="things">${members.map((each) => renderMember(screen, each))}</ul>
${invitations.length > 0 && open}
</section>
<section class="facts">${screen.may('members:write') && renderInvite(screen, isMailed)}
${renderLimit(screen, limit)}</section></div>`
}

function renderMember(screen: Screen, shown: StoreMember): Html {
  const { id, name, email, role, createdAt } = shown
  const texts = screen.texts.team
  const isSelf = id === screen.session.member.id
  const since = fill(texts.since, { time: showMinute(screen.locale, createdAt) })
  const about = html`${email && html`${email}, `}${since}`
  const who = html`<b>${name}</b>${isSelf && html` ${texts.you}`} ${renderChip(texts.roles[role])}`
  return html`<li><p>${who}<small>${about}</small></p>${
    screen.may('members:write') && !isSelf && renderActs(screen, shown)
  }</li>`
}

function renderActs({ base, formFields, texts: { team: texts } }: Screen, shown: StoreMember): Html {
  const { id, name, role } = shown
  const member = html`${formFields}${renderHidden('memberId', id)}`
  const options = roles.map((each) => [each, texts.roles[each]] as const)
  return html`<div class="acts">
<form method="post" action="${base}/members/role" data-confirm="member.role">${member}
${renderSelect('role', texts.roleOf.replace('{name}', name), role, options)}
<button class="quiet">${texts.changeRole}</button></form>
<form method="post" action="${base}/members/recover" data-confirm="member.recover">${member}
<button class="quiet">${texts.lostPasskey}</button></form>
<form method="post" action="${base}/members/remove" data-confirm="member.remove">${member}
<button class="quiet">${texts.remove}</button></form></div>`
}

function renderInvitation(screen: Screen, invitation: Invitation): Html {
  const { base, formFields, locale } = screen
  const { id, name, role, isRecovery, expiresAt } = invitation
  const { team: texts } = screen.texts
  const until = fill(texts.until, { time: showMinute(locale, expiresAt) })
  const what = renderChip(isRecovery ? texts.newPasskey : texts.roles[role])
  return html`<li><p><b>${name}</b> ${what}<small>${until}</small></p>
<form method="post" action="${base}/members/withdraw">${formFields}
${renderHidden('invitationId', id)}<button class="quiet">${texts.withdraw}</button></form></li>`
}

function renderInvite({ base, formFields, texts: { team: texts } }: Screen, isMailed: boolean): Html {
  const label = isMailed ? texts.emailMailed : texts.email
  const options = roles.toReversed().map((role) => [role, texts.describeRole[role]] as const)
  return html`<h2>${texts.invite}</h2>
<form method="post" action="${base}/members" data-confirm="member.invite" class="fields">${formFields}
${renderField(texts.name, 'name', { required: true, maxlength: 100, autocomplete: 'off' })}
${renderField(label, 'email', { type: 'email', maxlength: 200, autocomplete: 'off' })}
${renderChooser(texts.role, 'role', '', options)}
<div><button>${texts.makeLink}</button></div>
</form>`
}

function renderLimit(screen: Screen, limit: string): Html {
  const { base, formFields } = screen
  const texts = screen.texts.refunds
  const said = isNothing(limit) ? html`${texts.limitNone}` : fill(texts.limitIs, { limit })
  if (!screen.may('members:write')) return html`<h2>${texts.limitTitle}</h2><p>${said}</p>`
  const amount = { value: limit, required: true, inputmode: 'decimal', pattern: '\\d{1,9}(\\.\\d{1,2})?' }
  return html`<h2>${texts.limitTitle}</h2>
<form method="post" action="${base}/members/refund-limit" data-confirm="refund.limit" class="fields">${formFields}
<p class="soft">${texts.limitAbout}</p>
${renderField(texts.limitLabel, 'limit', { ...amount, maxlength: 12, autocomplete: 'off' })}
<div><button class="quiet">${texts.limitSave}</button></div>
</form>`
}
