import type { Role } from '../../../members/member.ts'
import type { Texts } from '../languages/pick.ts'

type FrameTexts = {
  readonly skip: string
  readonly testStore: string
  readonly noMoney: string
  readonly stores: string
  readonly test: string
  readonly account: string
  readonly main: string
  readonly operator: string
  readonly more: string
  readonly close: string
  readonly search: string
  readonly searchFor: string
  readonly toDecide: string
  readonly theme: string
  readonly themes: Readonly<Record<'auto' | 'light' | 'dark', string>>
  readonly roles: Readonly<Record<Role, string>>
  readonly live: string
  readonly api: string
  readonly command: string
  readonly copy: string
  readonly copied: string
  readonly screens: Readonly<
    Record<
      | 'start'
      | 'home'
      | 'payments'
      | 'inbox'
      | 'refunds'
      | 'wallets'
      | 'developers'
      | 'look'
      | 'team'
      | 'activity'
      | 'stores'
      | 'settlers'
      | 'chains'
      | 'queues'
      | 'doctor',
      string
    >
  >
}

export const frameTexts: Texts<FrameTexts> = {
  en: {
    skip: 'Skip to content',
    testStore: 'Test store',
    noMoney: 'No real money moves here',
    stores: 'Stores',
    test: 'Test',
    account: 'Your account',
    main: 'Main',
    operator: 'Operator',
    more: 'More',
    close: 'Close',
    search: 'Search',
    searchFor: 'Order, id, address or transaction',
    toDecide: '{count} to decide',
    theme: 'Theme',
    themes: { auto: 'Auto', light: 'Light', dark: 'Dark' },
    roles: { owner: 'Owner', manager: 'Manager', developer: 'Developer', viewer: 'Viewer' },
    live: 'Updates by itself',
    api: 'Same by API',
    command: 'Same by command',
    copy: 'Copy',
    copied: 'Copied',
    screens: {
      start: 'First steps',
      home: 'Home',
      payments: 'Payments',
      inbox: 'Inbox',
      refunds: 'Refunds',
      wallets: 'Wallets',
      developers: 'Developers',
      look: 'Look',
      team: 'Team',
      activity: 'Activity',
      stores: 'Stores',
      settlers: 'Settlers',
      chains: 'Chains',
      queues: 'Queues',
      doctor: 'Doctor',
    },
  },
  es: {
    skip: 'Ir al contenido',
    testStore: 'Tienda de prueba',
    noMoney: 'Aquí no se mueve dinero real',
    stores: 'Tiendas',
    test: 'Prueba',
    account: 'Su cuenta',
    main: 'Principal',
    operator: 'Operador',
    more: 'Más',
    close: 'Cerrar',
    search: 'Buscar',
    searchFor: 'Pedido, id, dirección o transacción',
    toDecide: '{count} por decidir',
    theme: 'Tema',
    themes: { auto: 'Auto', light: 'Claro', dark: 'Oscuro' },
    roles: { owner: 'Propietario', manager: 'Encargado', developer: 'Desarrollador', viewer: 'Lector' },
    live: 'Se actualiza sin recargar',
    api: 'Lo mismo con la API',
    command: 'Lo mismo con un comando',
    copy: 'Copiar',
    copied: 'Copiado',
    screens: {
      start: 'Primeros pasos',
      home: 'Inicio',
      payments: 'Pagos',
      inbox: 'Bandeja',
      refunds: 'Reembolsos',
      wallets: 'Carteras',
      developers: 'Desarrollo',
      look: 'Aspecto',
      team: 'Equipo',
      activity: 'Actividad',
      stores: 'Tiendas',
      settlers: 'Liquidadores',
      chains: 'Cadenas',
      queues: 'Colas',
      doctor: 'Diagnóstico',
    },
  },
}
