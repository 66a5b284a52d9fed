// No two folders import each other, whichever of their files do. Tests are left out: they may look
// into any room.
const { options } = require('./dependency-cruiser.config.cjs');

module.exports = {
  forbidden: [
    {
      name: 'no-folder-cycles',
      severity: 'error',
      scope: 'folder',
      from: {},
      to: { circular: true },
    },
  ],
  options: {
    ...options,
    exclude: { path: `${options.exclude.path}|(^|/)testing/|\\.test\\.ts$` },
  },
};
