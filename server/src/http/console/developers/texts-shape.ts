import type { Delivery, KeyPreset, WebhookEndpoint } from '@farthing/sdk'

type Subject = 'checkouts' | 'payments' | 'refunds' | 'wallets' | 'webhooks' | 'reports' | 'keys'

/** Every text of these screens. */
export type DeveloperTexts = {
  readonly title: string
  readonly parts: string
  readonly tabs: Readonly<Record<'keys' | 'deliveries' | 'events', string>>
  readonly back: string
  readonly cancel: string
  readonly older: string
  readonly newest: string
  readonly show: string
  readonly action: string

  readonly keys: string
  readonly keysAbout: string
  readonly ownersMake: string
  readonly newKey: string
  readonly noKeys: string
  readonly key: string
  readonly may: string
  readonly lastUsed: string
  readonly neverUsed: string
  readonly unnamed: string
  readonly everything: string
  readonly from: string
  readonly expires: string
  readonly expired: string
  readonly revoked: string
  readonly revoke: string
  readonly label: string
  readonly labelExample: string
  readonly presets: Readonly<Record<KeyPreset | 'scopes', { readonly name: string; readonly about: string }>>
  readonly subjects: Readonly<Record<Subject, string>>
  readonly levels: Readonly<Record<'none' | 'read' | 'write', string>>
  readonly addresses: string
  readonly addressesAbout: string
  readonly makeKey: string
  readonly noScopes: string
  readonly keyMade: string
  readonly keyMadeAbout: string
  readonly copyKey: string

  readonly endpoints: string
  readonly endpointsAbout: string
  readonly addEndpoint: string
  readonly noEndpoints: string
  readonly endpoint: string
  readonly everyEvent: string
  readonly someEvents: string
  readonly inOrder: string
  readonly delivering: string
  readonly failing: string
  readonly failingSince: string
  readonly lastAnswer: string
  readonly noAnswer: string
  readonly waiting: string
  readonly waitingOne: string
  readonly nextTry: string
  readonly disabled: Readonly<Record<NonNullable<WebhookEndpoint['disabledReason']>, string>>
  readonly disabledChip: string
  readonly sendTest: string
  readonly seeDeliveries: string
  readonly url: string
  readonly urlAbout: string
  readonly types: string
  readonly typesAbout: string
  readonly ordered: string
  readonly save: string
  readonly add: string
  readonly disable: string
  readonly enable: string
  readonly enableAbout: string
  readonly disableAbout: string
  readonly remove: string
  readonly removeAbout: string
  readonly secret: string
  readonly secretAbout: string
  readonly overlap: string
  readonly overlaps: Readonly<Record<'0' | '3600' | '86400', string>>
  readonly roll: string
  readonly secretMade: string
  readonly secretMadeAbout: string
  readonly copySecret: string

  readonly deliveries: string
  readonly latest: string
  readonly noDeliveries: string
  readonly noneFound: string
  readonly lookFurther: string
  readonly event: string
  readonly answer: string
  readonly time: string
  readonly allEndpoints: string
  readonly allStates: string
  readonly allTypes: string
  readonly states: Readonly<Record<Delivery['state'], string>>
  readonly tries: string
  readonly try: string
  readonly notTried: string
  readonly interrupted: string
  readonly milliseconds: string
  readonly resend: string
  readonly resendAll: string
  readonly resendAllAbout: string
  readonly since: string
  readonly hours: Readonly<Record<'1' | '6' | '24' | '72' | '168' | '720', string>>
  readonly include: string
  readonly includes: Readonly<Record<'undelivered' | 'all', string>>
  readonly onTheWay: string
  readonly onTheWayNone: string
  readonly moreToSend: string
  readonly goOn: string
  readonly delivery: string
  readonly deletedEndpoint: string
  readonly request: string
  readonly requestAbout: string
  readonly attempts: string
  readonly attempt: string
  readonly signature: string

  readonly events: string
  readonly eventsAbout: string
  readonly noEvents: string
  readonly about: string
  readonly by: string
  readonly aboutWhat: string
  readonly noSuchPayment: string
  readonly number: string
  readonly raw: string

  readonly problems: Readonly<Record<string, string>>
}
