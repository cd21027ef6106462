import type { EventType } from '@farthing/sdk'
import type { Texts } from '../languages/pick.ts'

export const kinds = [
  'checkout',
  'payment',
  'refund',
  'store',
  'wallet',
  'key',
  'member',
  'webhook_endpoint',
] as const

type ActivityTexts = {
  readonly title: string
  readonly about: string
  readonly anybody: string
  readonly anything: string
  readonly who: string
  readonly what: string
  readonly show: string
  readonly members: string
  readonly keys: string
  readonly newest: string
  readonly older: string
  readonly lookFurther: string
  readonly looked: string
  readonly none: string
  readonly empty: string
  readonly details: string
  readonly kinds: Readonly<Record<(typeof kinds)[number], string>>
  /** What somebody did. A type that is not here is named as it is. */
  readonly sentences: Readonly<Partial<Record<EventType, string>>>
  readonly other: string
}

export const activityTexts: Texts<ActivityTexts> = {
  en: {
    title: 'Activity',
    about: 'Who changed what in this store: people, keys and operators.',
    anybody: 'Anybody',
    anything: 'Anything',
    who: 'Who',
    what: 'What',
    show: 'Show',
    members: 'Members',
    keys: 'Keys',
    newest: 'Newest',
    older: 'Older',
    lookFurther: 'Look further back',
    looked: 'Looked through numbers {from} to {to} of the event log.',
    none: 'Nobody did anything like that there.',
    empty: 'Nobody has changed anything yet.',
    details: 'Details',
    kinds: {
      checkout: 'Checkouts',
      payment: 'Decisions about payments',
      refund: 'Refunds',
      store: 'Settings',
      wallet: 'Wallets',
      key: 'Keys',
      member: 'Members',
      webhook_endpoint: 'Webhooks',
    },
    sentences: {
      'checkout.created': '{who} created a checkout: {what}',
      'checkout.canceled': '{who} canceled a checkout: {what}',
      'payment.accepted': '{who} accepted payment {what}',
      'payment.dismissed': '{who} put payment {what} aside',
      'refund.requested': '{who} asked for a refund: {what}',
      'refund.canceled': '{who} canceled a refund: {what}',
      'store.updated': '{who} changed the settings of {what}',
      'wallet.registered': '{who} asked to be paid to {what}',
      'wallet.updated': '{who} changed something about wallet {what}',
      'wallet.retired': '{who} took wallet {what} out of use',
      'wallet.confirmed': '{who} confirmed wallet {what}',
      'wallet.refused': '{who} refused or replaced wallet {what}',
      'wallet.undone': '{who} undid a change of wallet: {what}',
      'key.created': '{who} made the key {what}',
      'key.revoked': '{who} revoked the key {what}',
      'member.invited': '{who} made a link for {what} ({role})',
      'member.joined': '{what} joined ({role})',
      'member.recovered': '{what} used a recovery link',
      'member.removed': '{who} removed {what}',
      'member.role_changed': '{who} gave {what} another role: {role}',
      'member.operator_added': '{who} made {what} an operator of the deployment',
      'member.operator_removed': '{who} took from {what} the role of an operator',
      'member.passkey_added': '{what} added a passkey',
      'member.passkey_removed': '{what} removed a passkey',
      'member.identity_added': '{what} connected an account to sign in with',
      'member.identity_removed': '{what} disconnected an account',
      'member.signed_in': '{what} signed in from a browser or network that is new',
      'member.session_moved': 'A session of {what} was used from another browser or network',
      'webhook_endpoint.created': '{who} added the webhook endpoint {what}',
      'webhook_endpoint.updated': '{who} changed the webhook endpoint {what}',
      'webhook_endpoint.deleted': '{who} deleted the webhook endpoint {what}',
      'webhook_endpoint.disabled': '{who} switched off the webhook endpoint {what}, which did not answer',
      'webhook_endpoint.undelivered': '{who} gave up an event for the webhook endpoint {what}',
      'webhook_endpoint.test': '{who} sent a test event to {what}',
    },
    other: '{who}: {type} {what}',
  },
  es: {
    title: 'Actividad',
    about: 'Quién cambió qué en esta tienda: personas, claves y operadores.',
    anybody: 'Cualquiera',
    anything: 'Cualquier cosa',
    who: 'Quién',
    what: 'Qué',
    show: 'Mostrar',
    members: 'Miembros',
    keys: 'Claves',
    newest: 'Más reciente',
    older: 'Anterior',
    lookFurther: 'Buscar más atrás',
    looked: 'Revisados los números {from} a {to} del registro de eventos.',
    none: 'Nadie hizo nada así en ese tramo.',
    empty: 'Nadie ha cambiado nada todavía.',
    details: 'Detalles',
    kinds: {
      checkout: 'Cobros',
      payment: 'Decisiones sobre pagos',
      refund: 'Reembolsos',
      store: 'Ajustes',
      wallet: 'Carteras',
      key: 'Claves',
      member: 'Miembros',
      webhook_endpoint: 'Webhooks',
    },
    sentences: {
      'checkout.created': '{who} creó un cobro: {what}',
      'checkout.canceled': '{who} canceló un cobro: {what}',
      'payment.accepted': '{who} aceptó el pago {what}',
      'payment.dismissed': '{who} apartó el pago {what}',
      'refund.requested': '{who} pidió un reembolso: {what}',
      'refund.canceled': '{who} canceló un reembolso: {what}',
      'store.updated': '{who} cambió los ajustes de {what}',
      'wallet.registered': '{who} pidió cobrar en {what}',
      'wallet.updated': '{who} cambió algo de la cartera {what}',
      'wallet.retired': '{who} dejó de usar la cartera {what}',
      'wallet.confirmed': '{who} confirmó la cartera {what}',
      'wallet.refused': '{who} rechazó o sustituyó la cartera {what}',
      'wallet.undone': '{who} deshizo un cambio de cartera: {what}',
      'key.created': '{who} creó la clave {what}',
      'key.revoked': '{who} revocó la clave {what}',
      'member.invited': '{who} creó un enlace para {what} ({role})',
      'member.joined': '{what} se incorporó ({role})',
      'member.recovered': '{what} usó un enlace de recuperación',
      'member.removed': '{who} quitó a {what}',
      'member.role_changed': '{who} dio a {what} otro papel: {role}',
      'member.operator_added': '{who} hizo a {what} operador del servicio',
      'member.operator_removed': '{who} retiró a {what} el papel de operador',
      'member.passkey_added': '{what} añadió una llave de acceso',
      'member.passkey_removed': '{what} quitó una llave de acceso',
      'member.identity_added': '{what} conectó una cuenta para entrar',
      'member.identity_removed': '{what} desconectó una cuenta',
      'member.signed_in': '{what} inició sesión desde un navegador o una red que no conocíamos',
      'member.session_moved': 'Una sesión de {what} se usó desde otro navegador u otra red',
      'webhook_endpoint.created': '{who} añadió el destino de webhooks {what}',
      'webhook_endpoint.updated': '{who} cambió el destino de webhooks {what}',
      'webhook_endpoint.deleted': '{who} eliminó el destino de webhooks {what}',
      'webhook_endpoint.disabled': '{who} desactivó el destino de webhooks {what}, que no respondía',
      'webhook_endpoint.undelivered': '{who} abandonó un evento para el destino de webhooks {what}',
      'webhook_endpoint.test': '{who} envió un evento de prueba a {what}',
    },
    other: '{who}: {type} {what}',
  },
}
